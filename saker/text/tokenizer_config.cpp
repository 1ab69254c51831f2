// SPDX-License-Identifier: Apache-2.0
#include "saker/text/tokenizer_config.h"

#include "saker/base/error.h"

namespace saker::text {
namespace {

Json read_object_if_present(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return Json::object();
  }
  auto json = read_json_file(path);
  require(
      json.is_object(),
      ErrorCode::kCorruptData,
      "{}: got {}, expected an object",
      path.string(),
      describe_json(json)
  );
  return json;
}

// A token is written as its text or as an object that describes it.
std::optional<std::string> token_text(const Json& value) {
  const Json* text = &value;
  if (value.is_object() && value.contains("content")) {
    text = &value.at("content");
  }
  return text->is_string() ? std::optional(text->get<std::string>()) : std::nullopt;
}

void collect_tokens(const Json& object, std::map<std::string, std::string>& tokens) {
  for (const auto& [name, value] : object.items()) {
    if (!name.ends_with("_token")) {
      continue;
    }
    if (auto text = token_text(value)) {
      tokens[name] = *std::move(text);
    }
  }
}

}  // namespace

std::optional<std::string> TokenizerConfig::special_token(const std::string& name) const {
  const auto found = special_tokens.find(name);
  return found == special_tokens.end() ? std::nullopt : std::optional(found->second);
}

TokenizerConfig load_tokenizer_config(const std::filesystem::path& model_dir) {
  const auto json = read_object_if_present(model_dir / "tokenizer_config.json");
  TokenizerConfig config;
  collect_tokens(json, config.special_tokens);
  if (!json.contains("added_tokens_decoder")) {
    const auto legacy = read_object_if_present(model_dir / "special_tokens_map.json");
    collect_tokens(legacy, config.special_tokens);
  }
  if (json.contains("extra_special_tokens") && json.at("extra_special_tokens").is_object()) {
    collect_tokens(json.at("extra_special_tokens"), config.special_tokens);
  }
  config.add_bos_token = json_bool(json, "add_bos_token", false);
  if (json.contains("chat_template")) {
    config.chat_template = json.at("chat_template");
  }
  return config;
}

}  // namespace saker::text
