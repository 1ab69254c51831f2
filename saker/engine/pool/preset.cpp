// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/pool/preset.h"

#include "saker/base/error.h"
#include "saker/engine/options/apply_options.h"
#include "saker/engine/options/option_values.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace saker::engine {
namespace {

// The options over those of `sampling`.
sample::SamplingOptions over(const Json& options, sample::SamplingOptions sampling) {
  Request request;
  request.sampling = std::move(sampling);
  for (const auto& [name, value] : options.items()) {
    const RequestOption* option = find_option(name);
    require(
        option != nullptr && option->group == "Sampling",
        ErrorCode::kInvalidArgument,
        "{:?} is no option of sampling",
        name
    );
    apply_option(*option, name, value, request);
  }
  check_request(request);
  return request.sampling;
}

class PresetModel : public LanguageModel {
 public:
  PresetModel(std::unique_ptr<LanguageModel> model, const Preset& preset)
      : model_(std::move(model)),
        kv_bits_(preset.kv_bits),
        facts_(model_->facts()),
        sampling_(over(preset.sampling, model_->recommended_sampling())) {
    if (preset.context > 0 && preset.context < facts_.context_length) {
      facts_.context_length = preset.context;
      is_shorter_ = true;
    }
  }

  Stream submit(Request request) override {
    if (kv_bits_ > 0) {
      request.placement.kv_bits = kv_bits_;
    }
    if (is_shorter_) {
      limit(request);
    }
    return model_->submit(std::move(request));
  }

  std::vector<ScoreOutcome> score(std::span<const ScoreRequest> requests) override {
    return model_->score(requests);
  }

  EmbedResult embed(const EmbedRequest& request) override { return model_->embed(request); }

  RerankResult rerank(const RerankRequest& request) override { return model_->rerank(request); }

  std::vector<std::int32_t> prompt_tokens(const Request& request) const override {
    return model_->prompt_tokens(request);
  }

  double busy_seconds() const override { return model_->busy_seconds(); }

  const ModelFacts& facts() const override { return facts_; }

  const text::Tokenizer* tokenizer() const override { return model_->tokenizer(); }

  const text::ChatTemplate* chat_template() const override { return model_->chat_template(); }

  sample::SamplingOptions recommended_sampling() const override { return sampling_; }

 private:
  // Prompt and answer end where the preset's context does.
  void limit(Request& request) const {
    const auto tokens = static_cast<std::int64_t>(model_->prompt_tokens(request).size());
    const std::int64_t room = facts_.context_length - tokens;
    require(
        room > 0,
        ErrorCode::kInvalidArgument,
        "the prompt has {} tokens, but the model's context is {} tokens long",
        tokens,
        facts_.context_length
    );
    int& most = request.output.max_tokens;
    most = static_cast<int>(most == kNoTokenLimit ? room : std::min<std::int64_t>(most, room));
  }

  std::unique_ptr<LanguageModel> model_;
  int kv_bits_;
  ModelFacts facts_;
  bool is_shorter_ = false;
  sample::SamplingOptions sampling_;
};

}  // namespace

void check_preset(const Preset& preset) {
  constexpr std::array kBits = {0, 4, 8, 16, 32};
  require(
      std::ranges::find(kBits, preset.kv_bits) != kBits.end(),
      ErrorCode::kInvalidArgument,
      "kv_bits: expected 4, 8, 16 or 32, got {}",
      preset.kv_bits
  );
  require(
      preset.sampling.is_object(),
      ErrorCode::kInvalidArgument,
      "sampling: expected an object, got {}",
      describe_json(preset.sampling)
  );
  over(preset.sampling, {});
}

std::unique_ptr<LanguageModel> with_preset(
    std::unique_ptr<LanguageModel> model, const Preset& preset
) {
  if (preset.sampling.empty() && preset.context == 0 && preset.kv_bits == 0) {
    return model;
  }
  return std::make_unique<PresetModel>(std::move(model), preset);
}

}  // namespace saker::engine
