// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/prompts.h"

#include "saker/base/error.h"
#include "saker/text/eos_tokens.h"
#include "saker/text/token_search.h"
#include "saker/text/tokenizer_config.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::engine {

namespace {

int prompt_kinds(const GenerateRequest& request) {
  return (request.prompt ? 1 : 0) + (request.tokens ? 1 : 0) + (request.messages ? 1 : 0);
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

// Gemma 4's files name the tokens that stand for images and sounds.
std::vector<std::int32_t> suppressed_by(const Json& generation_config) {
  std::vector<std::int32_t> ids;
  const auto found = generation_config.find("suppress_tokens");
  if (found == generation_config.end() || found->is_null()) {
    return ids;
  }
  const auto check = [](bool holds, const Json& got) {
    require(
        holds,
        ErrorCode::kCorruptData,
        "suppress_tokens: got {}, expected a list of token ids",
        got.is_number() ? got.dump() : got.type_name()
    );
  };
  check(found->is_array(), *found);
  for (const Json& id : *found) {
    check(id.is_number_integer() && id >= 0 && id <= std::numeric_limits<std::int32_t>::max(), id);
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

sample::SamplingOptions read_sampling(const Json& generation_config) {
  sample::SamplingOptions options;
  if (!json_bool(generation_config, "do_sample", false)) {
    options.temperature = 0.0;
  } else {
    options.temperature = json_double(generation_config, "temperature", 1.0);
  }
  options.top_p = json_double(generation_config, "top_p", options.top_p);
  options.min_p = json_double(generation_config, "min_p", options.min_p);
  options.typical_p = json_double(generation_config, "typical_p", options.typical_p);
  options.repetition_penalty =
      json_double(generation_config, "repetition_penalty", options.repetition_penalty);
  options.repetition_context_size = 0;  // Who writes these files means all tokens.
  const auto count = [&generation_config](std::string_view name) {
    const std::int64_t value = json_int(generation_config, name, 0);
    return static_cast<int>(std::clamp<std::int64_t>(value, 0, std::numeric_limits<int>::max()));
  };
  options.top_k = count("top_k");
  options.min_tokens = count("min_new_tokens");
  options.suppress_tokens = suppressed_by(generation_config);
  sample::check_options(options, std::numeric_limits<int>::max());
  return options;
}

}  // namespace

sample::SamplingOptions sampling_from(const Json& generation_config) {
  try {
    return read_sampling(generation_config);
  } catch (const Error& error) {
    throw Error(ErrorCode::kCorruptData, fmt::format("generation_config.json: {}", error.what()));
  }
}

std::shared_ptr<const Prompts> Prompts::load(const std::filesystem::path& model_dir) {
  Parts parts;
  const text::TokenizerConfig config = text::load_tokenizer_config(model_dir);
  parts.warnings = config.warnings;
  parts.tokenizer = text::Tokenizer::load_if_present(model_dir, config);
  if (parts.tokenizer != nullptr) {
    if (std::string moved = parts.tokenizer->moved_tokens(); !moved.empty()) {
      parts.warnings.push_back(std::move(moved));
    }
  }
  parts.chat_template = text::ChatTemplate::load(model_dir, config);
  parts.eos_tokens = text::load_eos_tokens(model_dir, parts.tokenizer.get(), config);
  parts.add_bos_token = config.add_bos_token;
  if (parts.tokenizer != nullptr) {
    for (const auto& [name, text] : config.special_tokens) {
      if (const auto id = parts.tokenizer->token_id(text)) {
        parts.special_tokens.emplace(name, *id);
      }
    }
  }
  const std::filesystem::path generation = model_dir / "generation_config.json";
  if (std::filesystem::exists(generation)) {
    parts.recommended_sampling = sampling_from(read_json_file(generation));
  }
  return std::make_shared<const Prompts>(std::move(parts));
}

Prompts::Prompts(Parts parts) : parts_(std::move(parts)), xtc_exempt_(parts_.eos_tokens) {
  if (parts_.tokenizer == nullptr) {
    return;
  }
  for (const std::int32_t id : parts_.tokenizer->encode("\n", {.add_special_tokens = false})) {
    xtc_exempt_.push_back(id);
  }
}

std::vector<std::int32_t> Prompts::dry_breakers(const GenerateRequest& request) const {
  if (request.sampling.dry_multiplier <= 0.0 || parts_.tokenizer == nullptr) {
    return {};
  }
  const std::scoped_lock lock(breakers_mutex_);
  if (breaker_texts_ != request.dry_breakers) {
    try {
      breakers_ = text::tokens_with(*parts_.tokenizer, request.dry_breakers);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("dry_sequence_breaker: {}", error.what()));
    }
    breaker_texts_ = request.dry_breakers;
  }
  return breakers_;
}

const text::ChatTemplate* Prompts::chat_template() const {
  return parts_.chat_template ? &*parts_.chat_template : nullptr;
}

std::optional<std::int32_t> Prompts::special_token(std::string_view name) const {
  const auto found = parts_.special_tokens.find(name);
  return found == parts_.special_tokens.end() ? std::nullopt : std::optional(found->second);
}

const text::Tokenizer& Prompts::tokenizer_for_text() const {
  require(
      parts_.tokenizer != nullptr,
      ErrorCode::kUnsupported,
      "the model has no tokenizer.json: give token ids instead of text"
  );
  return *parts_.tokenizer;
}

std::vector<std::int32_t> Prompts::encode_text(const std::string& text) const {
  std::vector<std::int32_t> ids = tokenizer_for_text().encode(text);
  const auto bos = parts_.add_bos_token ? special_token("bos_token") : std::nullopt;
  if (bos && (ids.empty() || ids.front() != *bos)) {
    ids.insert(ids.begin(), *bos);
  }
  return ids;
}

std::vector<std::int32_t> Prompts::encode(const GenerateRequest& request) const {
  require(
      prompt_kinds(request) == 1,
      ErrorCode::kInvalidArgument,
      "a request needs exactly one of prompt, tokens and messages, got {}",
      prompt_kinds(request)
  );
  if (request.tokens) {
    return *request.tokens;
  }
  if (request.prompt && !request.cache_in.empty()) {
    return tokenizer_for_text().encode(*request.prompt, {.add_special_tokens = false});
  }
  if (request.prompt) {
    return encode_text(*request.prompt);
  }
  const text::Tokenizer& tokenizer = tokenizer_for_text();
  require(
      parts_.chat_template.has_value(),
      ErrorCode::kUnsupported,
      "the model has no chat template: give the prompt as text"
  );
  text::RenderOptions options;
  options.tools = request.tools;
  options.kwargs = request.template_kwargs;
  return tokenizer.encode(
      parts_.chat_template->render(*request.messages, options), {.add_special_tokens = false}
  );
}

ScorePrompt Prompts::encode(const ScoreRequest& request) const {
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
    result.tokens = encode_text(*request.text);
    return result;
  }
  if (!request.completion) {
    result.tokens = encode_text(*request.prompt);
    result.first_scored = static_cast<int>(result.tokens.size());
    check_next_only(result, request);
    return result;
  }
  const std::vector<std::int32_t> prompt = encode_text(*request.prompt);
  result.tokens = encode_text(*request.prompt + *request.completion);
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
