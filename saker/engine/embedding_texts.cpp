// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/embedding_texts.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace saker::engine {
namespace {

constexpr std::string_view kFile = "config_sentence_transformers.json";

// Readable files alone matter here; code that needs config.json reports what is wrong with it.
Json object_of(const text::ModelTexts& texts, std::string_view name) {
  try {
    Json value = texts.has(name) ? texts.read_json(name) : Json::object();
    return value.is_object() ? value : Json::object();
  } catch (const Error&) {
    return Json::object();
  }
}

std::optional<std::int32_t> first_id(const Json& config) {
  const auto found = config.find("eos_token_id");
  if (found == config.end()) {
    return std::nullopt;
  }
  const Json& id = found->is_array() && !found->empty() ? found->front() : *found;
  const bool is_id =
      id.is_number_integer() && id >= 0 && id <= std::numeric_limits<std::int32_t>::max();
  return is_id ? std::optional(id.get<std::int32_t>()) : std::nullopt;
}

void read_prompts(const Json& file, EmbeddingTexts& result, std::vector<std::string>& warnings) {
  const auto skip = [&](std::string_view what, std::string_view expected) {
    warnings.push_back(fmt::format("{}: {}, expected {}; it is not used", kFile, what, expected));
  };
  if (const auto prompts = file.find("prompts"); prompts != file.end() && prompts->is_object()) {
    for (const auto& [name, prompt] : prompts->items()) {
      if (prompt.is_string()) {
        result.prompts.emplace(name, prompt.get<std::string>());
      } else {
        skip(fmt::format("prompt {} is {}", quote(name), prompt.type_name()), "a text");
      }
    }
  }
  const auto chosen = file.find("default_prompt_name");
  if (chosen == file.end() || chosen->is_null()) {
    return;
  }
  if (chosen->is_string() && result.prompts.contains(chosen->get<std::string>())) {
    result.default_prompt = chosen->get<std::string>();
  } else {
    skip("default_prompt_name names no prompt", "one of them or null");
  }
}

}  // namespace

EmbeddingTexts read_embedding_texts(
    const text::ModelTexts& texts,
    const text::TokenizerConfig& tokenizer,
    std::vector<std::string>& warnings
) {
  EmbeddingTexts result;
  result.add_bos_token = tokenizer.add_bos_token;
  result.add_eos_token = tokenizer.add_eos_token;
  result.end_token = first_id(object_of(texts, "config.json"));
  read_prompts(object_of(texts, kFile), result, warnings);
  return result;
}

}  // namespace saker::engine
