// SPDX-License-Identifier: Apache-2.0
#include "saker/text/eos_tokens.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/text/generation_config.h"

#include <limits>
#include <set>

namespace saker::text {
namespace {

constexpr std::string_view kConfig = "config.json";

// The value of `eos_token_id`; null if the file or the key is missing. Models of images and text
// may have it in their `text_config`.
Json read_eos(const ModelTexts& texts) {
  if (!texts.has(kConfig)) {
    return nullptr;
  }
  const auto json = texts.read_json(kConfig);
  const auto value = [](const Json& object) {
    return json_has(object, "eos_token_id") ? object.at("eos_token_id") : Json(nullptr);
  };
  if (!json.is_object()) {
    return nullptr;
  }
  const auto text = json.find("text_config");
  const bool is_nested = text != json.end() && text->is_object() && !json_has(json, "eos_token_id");
  return value(is_nested ? *text : json);
}

bool is_truthy(const Json& value) {
  return !value.is_null() && value != 0 && value != false && !(value.is_array() && value.empty());
}

void collect(const Json& value, std::string_view file, std::set<std::int32_t>& ids) {
  if (value.is_null()) {
    return;
  }
  for (const auto& item : value.is_array() ? value : Json::array({value})) {
    // Some configurations list null for "none", or have -1.
    if (item.is_null() || item == -1) {
      continue;
    }
    const bool is_id =
        item.is_number_integer() && item >= 0 && item <= std::numeric_limits<std::int32_t>::max();
    require(
        is_id,
        ErrorCode::kCorruptData,
        "{}: eos_token_id: got {}, expected a token id or a list of them",
        file,
        describe_json(item)
    );
    ids.insert(item.get<std::int32_t>());
  }
}

}  // namespace

std::vector<std::int32_t> load_eos_tokens(
    const ModelTexts& texts, const Tokenizer* tokenizer, const TokenizerConfig& config
) {
  auto value = read_generation_config(texts).values.value("eos_token_id", Json());
  if (!is_truthy(value)) {
    value = read_eos(texts);
  }
  std::set<std::int32_t> ids;
  collect(value, texts.shown(kConfig), ids);
  if (const auto name = config.special_token("eos_token"); name && tokenizer != nullptr) {
    if (const auto id = tokenizer->token_id(*name)) {
      ids.insert(*id);
    }
  }
  return {ids.begin(), ids.end()};
}

}  // namespace saker::text
