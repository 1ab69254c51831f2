// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/embed_texts.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/embed/text_vectors.h"
#include "saker/engine/adapters.h"
#include "saker/text/tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace saker::engine {
namespace {

// What texts have to fit.
struct Limits {
  models::EmbeddingConfig config;
  models::ModelInfo info;
};

Limits limits_of(const models::Model& model) {
  const models::EmbeddingHead* head = model.embedding_head();
  require(head != nullptr, ErrorCode::kUnsupported, "the model has no vectors of texts");
  models::ModelInfo info = model.info();
  info.context_length = head->config().most_tokens(info.context_length);
  return {head->config(), std::move(info)};
}

std::string prompt_of(const EmbeddingTexts& texts, const EmbedRequest& request) {
  require(
      request.prompt_name.empty() || !request.prompt,
      ErrorCode::kInvalidArgument,
      "a request has at most one of prompt and prompt_name, got both"
  );
  if (request.prompt) {
    return *request.prompt;
  }
  const std::string& name =
      request.prompt_name.empty() ? texts.default_prompt : request.prompt_name;
  if (name.empty()) {
    return "";
  }
  const auto found = texts.prompts.find(name);
  if (found == texts.prompts.end()) {
    std::vector<std::string> known;
    known.reserve(texts.prompts.size());
    for (const auto& [known_name, prompt] : texts.prompts) {
      known.push_back(quote(known_name));
    }
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "prompt_name: got {}, expected {}",
            quote(name),
            known.empty() ? "none, since the model has no prompts"
                          : fmt::format("one of {}", fmt::join(known, ", "))
        )
    );
  }
  return found->second;
}

// Texts to tokens, for one request.
class Encoder {
 public:
  Encoder(const Prompts& prompts, const Limits& limits, std::string prompt, bool truncate)
      : texts_(prompts.embedding_texts()),
        tokenizer_(prompts.tokenizer_for_text()),
        prompt_(std::move(prompt)),
        truncate_(truncate) {
    if (limits.info.context_length > 0) {
      options_.most_tokens = static_cast<std::size_t>(limits.info.context_length);
    }
    if (texts_.add_bos_token) {
      bos_ = prompts.special_token("bos_token");
    }
    const std::vector<std::int32_t> added = tokenizer_.encode("");
    const std::vector<std::int32_t> letter = tokenizer_.encode("a");
    const auto content =
        std::ranges::mismatch(letter | std::views::reverse, added | std::views::reverse);
    ending_.assign(content.in1.base(), letter.end());
    // Models that read the last token's row were trained with one that ends the text. Some
    // tokenizers leave it out.
    const bool reads_last =
        limits.config.is_declared && limits.config.pooling == models::Pooling::kLast;
    if (texts_.add_eos_token) {
      end_ = prompts.special_token("eos_token");
    } else if (reads_last && added.empty() && !bos_) {
      end_ = texts_.end_token;
    }
    if (end_ && (ending_.empty() || ending_.back() != *end_)) {
      ending_.push_back(*end_);
    }
  }

  // `truncated` counts texts that were cut.
  std::vector<std::int32_t> encode(const std::string& text, std::int64_t& truncated) const {
    const std::string whole = prompt_ + text;
    std::vector<std::int32_t> ids = tokenizer_.encode(whole, options_);
    if (bos_ && (ids.empty() || ids.front() != *bos_)) {
      ids.insert(ids.begin(), *bos_);
    }
    if (end_ && (ids.empty() || ids.back() != *end_)) {
      ids.push_back(*end_);
    }
    if (ids.empty() && texts_.end_token) {
      ids.push_back(*texts_.end_token);  // A text has at least one token.
    }
    const std::size_t most = options_.most_tokens;
    if (truncate_ && ids.size() > most && ending_.size() < most) {
      ids.resize(most - ending_.size());
      ids.insert(ids.end(), ending_.begin(), ending_.end());
      ++truncated;
    }
    require(
        ids.size() <= most || whole.size() <= text::kWholeTextBytes,
        ErrorCode::kInvalidArgument,
        "the text of {} bytes has more than {} tokens: the model's context",
        whole.size(),
        most
    );
    return ids;
  }

 private:
  const EmbeddingTexts& texts_;
  const text::Tokenizer& tokenizer_;
  std::string prompt_;
  bool truncate_;
  text::EncodeOptions options_;
  std::optional<std::int32_t> bos_;
  std::optional<std::int32_t> end_;   // Follows each text, unless the tokenizer adds it.
  std::vector<std::int32_t> ending_;  // The tokens after a text's own.
};

std::vector<std::vector<std::int32_t>> encode_inputs(
    const Prompts& prompts, const Limits& limits, const EmbedRequest& request, EmbedResult& result
) {
  std::optional<Encoder> encoder;
  if (std::ranges::any_of(request.inputs, [](const EmbedInput& input) {
        return std::holds_alternative<std::string>(input);
      })) {
    const EmbeddingTexts& texts = prompts.embedding_texts();
    encoder.emplace(prompts, limits, prompt_of(texts, request), request.truncate);
  }
  std::vector<std::vector<std::int32_t>> inputs;
  inputs.reserve(request.inputs.size());
  for (const EmbedInput& input : request.inputs) {
    try {
      const auto* const text = std::get_if<std::string>(&input);
      std::vector<std::int32_t> ids = text != nullptr ? encoder->encode(*text, result.truncated)
                                                      : std::get<std::vector<std::int32_t>>(input);
      embed::check_tokens(limits.info, ids);
      inputs.push_back(std::move(ids));
    } catch (const Error& error) {
      if (request.inputs.size() == 1) {
        throw;
      }
      throw Error(error.code(), fmt::format("input {}: {}", inputs.size(), error.what()));
    }
  }
  return inputs;
}

}  // namespace

EmbedResult embed_texts(
    Runner& runner, const Prompts& prompts, int prefill_step, const EmbedRequest& request
) {
  const Limits limits = runner.call(limits_of);
  EmbedResult result;
  const auto inputs = encode_inputs(prompts, limits, request, result);
  std::vector<embed::TokenSpan> sequences(inputs.begin(), inputs.end());
  for (const embed::TokenSpan tokens : sequences) {
    result.tokens += static_cast<std::int64_t>(tokens.size());
  }
  runner.read_adapters({&request.view, 1});
  result.embeddings = runner.call([&](const models::Model& model) {
    const embed::VectorOptions options{
        .pool =
            {.pooling = request.pooling.value_or(limits.config.pooling),
             .prefill_step = prefill_step,
             .adapter = runner.adapters().use(request.view, model),
             .before_pass = runner.before_pass(request.stop)},
        .normalize = request.normalize.value_or(limits.config.normalize),
        .dimensions = request.dimensions,
    };
    return embed::text_vectors(model, sequences, options);
  });
  return result;
}

}  // namespace saker::engine
