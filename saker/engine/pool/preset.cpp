// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/pool/preset.h"

#include "saker/base/error.h"
#include "saker/engine/options/apply_options.h"
#include "saker/engine/options/option_values.h"
#include "saker/engine/pool/forwarded_model.h"

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

class PresetModel : public ForwardedModel {
 public:
  PresetModel(std::unique_ptr<LanguageModel> model, const Preset& preset)
      : ForwardedModel(std::move(model)),
        kv_bits_(preset.kv_bits),
        facts_(base().facts()),
        sampling_(over(preset.sampling, base().recommended_sampling())) {
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
    return base().submit(std::move(request));
  }

  const ModelFacts& facts() const override { return facts_; }

  sample::SamplingOptions recommended_sampling() const override { return sampling_; }

 private:
  // Prompt and answer end where the preset's context does.
  void limit(Request& request) const {
    const auto tokens = static_cast<std::int64_t>(base().prompt_tokens(request).size());
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
