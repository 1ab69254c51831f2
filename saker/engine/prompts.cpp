// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/prompts.h"

#include "saker/base/error.h"
#include "saker/engine/embedding_texts.h"
#include "saker/text/chat_messages.h"
#include "saker/text/eos_tokens.h"
#include "saker/text/generation_config.h"
#include "saker/text/output/find_format.h"
#include "saker/text/token_search.h"
#include "saker/text/tokenizer_config.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::engine {

namespace {

int prompt_kinds(const Request& request) {
  return (request.prompt.text ? 1 : 0) + (request.prompt.tokens ? 1 : 0) +
         (request.prompt.messages ? 1 : 0);
}

void check_next_only(const ScorePrompt& prompt, const ScoreRequest& request) {
  require(
      !prompt.tokens.empty(),
      ErrorCode::kInvalidArgument,
      "the prompt has no tokens: nothing is before the next one"
  );
  require(
      request.top_k >= 1,
      ErrorCode::kInvalidArgument,
      "top_k: got {}, expected 1 or more for the next token of a prompt",
      request.top_k
  );
}

// Reports a text that is too long for the context before encoding all of it, which takes seconds
// and gigabytes for the longest texts.
std::vector<std::int32_t> encode_within(
    const text::Tokenizer& tokenizer,
    const std::string& text,
    text::EncodeOptions options,
    std::int64_t context
) {
  if (context <= 0 || text.size() <= text::kWholeTextBytes) {
    return tokenizer.encode(text, options);
  }
  options.most_tokens = static_cast<std::size_t>(context);
  std::vector<std::int32_t> ids = tokenizer.encode(text, options);
  require(
      ids.size() <= options.most_tokens,
      ErrorCode::kInvalidArgument,
      "the prompt of {} bytes has more than {} tokens, but the model's context is {} tokens long",
      text.size(),
      context,
      context
  );
  return ids;
}

// Gemma 4's files suppress the tokens that stand for images and sounds.
std::vector<std::int32_t> suppressed_by(const Json& value) {
  std::vector<std::int32_t> ids;
  const auto check = [](bool holds, const Json& got) {
    require(
        holds,
        ErrorCode::kCorruptData,
        "suppress_tokens: got {}, expected a list of token ids",
        got.is_number() ? got.dump() : got.type_name()
    );
  };
  check(value.is_array(), value);
  for (const Json& id : value) {
    check(id.is_number_integer() && id >= 0 && id <= std::numeric_limits<std::int32_t>::max(), id);
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

int count_of(const Json& config, std::string_view name) {
  const std::int64_t value = json_int(config, name, 0);
  return static_cast<int>(std::clamp<std::int64_t>(value, 0, std::numeric_limits<int>::max()));
}

// Sets one option from the file's member of this name, which exists.
struct SamplingField {
  std::string_view name;
  void (*set)(sample::SamplingOptions& options, const Json& config);
};

constexpr SamplingField kSamplingFields[] = {
    {"do_sample",
     [](auto& options, const Json& config) {
       options.temperature = json_bool(config, "do_sample", false) ? 1.0 : 0.0;
     }},
    {"temperature",
     [](auto& options, const Json& config) {
       const double temperature = json_double(config, "temperature", 1.0);
       options.temperature = options.temperature > 0.0 ? temperature : 0.0;
     }},
    {"top_p", [](auto& o, const Json& c) { o.top_p = json_double(c, "top_p", o.top_p); }},
    {"min_p", [](auto& o, const Json& c) { o.min_p = json_double(c, "min_p", o.min_p); }},
    {"typical_p",
     [](auto& o, const Json& c) { o.typical_p = json_double(c, "typical_p", o.typical_p); }},
    {"repetition_penalty",
     [](auto& o, const Json& c) {
       o.repetition_penalty = json_double(c, "repetition_penalty", o.repetition_penalty);
     }},
    {"top_k", [](auto& o, const Json& c) { o.top_k = count_of(c, "top_k"); }},
    {"min_new_tokens", [](auto& o, const Json& c) { o.min_tokens = count_of(c, "min_new_tokens"); }
    },
    {"suppress_tokens",
     [](auto& o, const Json& c) { o.suppress_tokens = suppressed_by(c.at("suppress_tokens")); }},
};

}  // namespace

RecommendedSampling sampling_from(const Json& generation_config) {
  RecommendedSampling result;
  result.options.temperature = 0.0;
  result.options.repetition_context_size = 0;  // Such files mean all tokens.
  for (const SamplingField& field : kSamplingFields) {
    if (!json_has(generation_config, field.name)) {
      continue;
    }
    sample::SamplingOptions changed = result.options;
    try {
      field.set(changed, generation_config);
      sample::check_options(changed, std::numeric_limits<int>::max());
      result.options = std::move(changed);
    } catch (const Error& error) {
      result.warnings.push_back(
          fmt::format("generation_config.json: {}; it is not used", error.what())
      );
    }
  }
  return result;
}

Prompts::Parts Prompts::read(const text::ModelTexts& texts) {
  Parts parts;
  text::TokenizerConfig config;
  try {
    config = text::load_tokenizer_config(texts);
    parts.warnings = config.warnings;
    parts.tokenizer = text::Tokenizer::load_if_present(texts, config);
    if (parts.tokenizer != nullptr) {
      if (std::string moved = parts.tokenizer->moved_tokens(); !moved.empty()) {
        parts.warnings.push_back(std::move(moved));
      }
    }
    parts.chat_template = text::ChatTemplate::load(texts, config);
    parts.response_template = config.response_template;
  } catch (const Error& error) {
    parts.tokenizer = nullptr;
    parts.text_error = error;
  }
  parts.eos_tokens = text::load_eos_tokens(texts, parts.tokenizer.get(), config);
  parts.add_bos_token = config.add_bos_token;
  if (parts.tokenizer != nullptr) {
    for (const auto& [name, text] : config.special_tokens) {
      if (const auto id = parts.tokenizer->token_id(text)) {
        parts.special_tokens.emplace(name, *id);
      }
    }
  }
  text::GenerationConfig generation = text::read_generation_config(texts);
  RecommendedSampling sampling = sampling_from(generation.values);
  parts.recommended_sampling = std::move(sampling.options);
  parts.embedding = read_embedding_texts(texts, config, parts.warnings);
  std::ranges::move(generation.warnings, std::back_inserter(parts.warnings));
  std::ranges::move(sampling.warnings, std::back_inserter(parts.warnings));
  return parts;
}

Prompts::Prompts(Parts parts) : parts_(std::move(parts)) {}

std::vector<std::int32_t> Prompts::xtc_exempt() const {
  std::vector<std::int32_t> exempt = parts_.eos_tokens;
  if (parts_.tokenizer != nullptr) {
    std::ranges::copy(
        parts_.tokenizer->encode("\n", {.add_special_tokens = false}), std::back_inserter(exempt)
    );
  }
  return exempt;
}

std::vector<std::int32_t> Prompts::dry_breakers(const Request& request) const {
  if (request.sampling.dry_multiplier <= 0.0 || parts_.tokenizer == nullptr) {
    return {};
  }
  const std::scoped_lock lock(breakers_mutex_);
  if (breaker_texts_ != request.sampling.dry_sequence_breakers) {
    try {
      breakers_ = text::tokens_with(*parts_.tokenizer, request.sampling.dry_sequence_breakers);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("dry_sequence_breakers: {}", error.what()));
    }
    breaker_texts_ = request.sampling.dry_sequence_breakers;
  }
  return breakers_;
}

std::vector<std::int32_t> Prompts::prediction(const Request& request, std::size_t most) const {
  const std::optional<std::string>& text = request.drafting.prediction;
  if (!text) {
    return {};
  }
  require(
      parts_.tokenizer != nullptr,
      ErrorCode::kInvalidArgument,
      "prediction: the model has no tokenizer"
  );
  try {
    return parts_.tokenizer->encode(*text, {.add_special_tokens = false, .most_tokens = most});
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("prediction: {}", error.what()));
  }
}

const text::OutputFormat& Prompts::output_format() const {
  std::call_once(format_once_, [this] {
    format_ =
        text::find_output_format(chat_template(), parts_.tokenizer.get(), parts_.response_template);
  });
  return format_;
}

const text::ChatTemplate* Prompts::chat_template() const {
  return parts_.chat_template ? &*parts_.chat_template : nullptr;
}

std::optional<std::int32_t> Prompts::special_token(std::string_view name) const {
  const auto found = parts_.special_tokens.find(name);
  return found == parts_.special_tokens.end() ? std::nullopt : std::optional(found->second);
}

const text::Tokenizer& Prompts::tokenizer_for_text() const {
  if (parts_.text_error) {
    throw Error(*parts_.text_error);
  }
  require(
      parts_.tokenizer != nullptr,
      ErrorCode::kUnsupported,
      "the model has no tokenizer.json: it takes and gives token ids, no text; transformers' "
      "AutoTokenizer with save_pretrained writes one"
  );
  return *parts_.tokenizer;
}

std::vector<std::int32_t> Prompts::encode_text(const std::string& text, std::int64_t context)
    const {
  std::vector<std::int32_t> ids =
      encode_within(tokenizer_for_text(), text, {.add_special_tokens = true}, context);
  const auto bos = parts_.add_bos_token ? special_token("bos_token") : std::nullopt;
  if (bos && (ids.empty() || ids.front() != *bos)) {
    ids.insert(ids.begin(), *bos);
  }
  return ids;
}

std::vector<std::int32_t> Prompts::encode(const Request& request, std::int64_t context) const {
  require(
      prompt_kinds(request) == 1,
      ErrorCode::kInvalidArgument,
      "a request needs exactly one of prompt, tokens and messages, got {}",
      prompt_kinds(request)
  );
  if (request.prompt.tokens) {
    return *request.prompt.tokens;
  }
  if (request.prompt.text && !request.prompt.cache_in.empty()) {
    return encode_within(
        tokenizer_for_text(), *request.prompt.text, {.add_special_tokens = false}, context
    );
  }
  if (request.prompt.text) {
    return encode_text(*request.prompt.text, context);
  }
  const text::Tokenizer& tokenizer = tokenizer_for_text();
  require(
      parts_.chat_template.has_value(),
      ErrorCode::kUnsupported,
      "the model has no chat template: give the prompt as text"
  );
  text::require_text_only(*request.prompt.messages);
  text::RenderOptions options;
  options.tools = request.prompt.tools;
  options.think = request.prompt.think;
  options.template_kwargs = request.prompt.template_kwargs;
  options.continues_last = request.prompt.continues_last;
  const std::string prompt = parts_.chat_template->render(*request.prompt.messages, options);
  spdlog::trace("prompt: {}", prompt);
  return encode_within(tokenizer, prompt, {.add_special_tokens = false}, context);
}

ScorePrompt Prompts::encode(const ScoreRequest& request, std::int64_t context) const {
  const bool has_tokens = request.tokens || !request.prompt_tokens.empty();
  require(
      (request.text ? 1 : 0) + (request.prompt ? 1 : 0) + (has_tokens ? 1 : 0) == 1 &&
          (request.prompt || !request.completion),
      ErrorCode::kInvalidArgument,
      "scoring needs exactly one of a text, a prompt with or without its completion, and tokens"
  );
  ScorePrompt result;
  if (has_tokens) {
    result.tokens = request.prompt_tokens;
    result.first_scored = static_cast<int>(request.prompt_tokens.size());
    if (request.tokens) {
      result.tokens.insert(result.tokens.end(), request.tokens->begin(), request.tokens->end());
    } else {
      check_next_only(result, request);
    }
    return result;
  }
  if (request.text) {
    result.tokens = encode_text(*request.text, context);
    return result;
  }
  if (!request.completion) {
    result.tokens = encode_text(*request.prompt, context);
    result.first_scored = static_cast<int>(result.tokens.size());
    check_next_only(result, request);
    return result;
  }
  const std::vector<std::int32_t> prompt = encode_text(*request.prompt, context);
  result.tokens = encode_text(*request.prompt + *request.completion, context);
  require(
      result.tokens.size() > prompt.size(),
      ErrorCode::kInvalidArgument,
      "the completion adds no token: the prompt has {}, prompt and completion have {}",
      prompt.size(),
      result.tokens.size()
  );
  result.first_scored = static_cast<int>(prompt.size());
  result.first_token_unscored = prompt.empty();
  result.boundary_merged = !std::equal(prompt.begin(), prompt.end(), result.tokens.begin());
  return result;
}

}  // namespace saker::engine
