// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/template_metadata.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/text/chat_template.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

using NamedTemplates = std::map<std::string, std::string>;

constexpr std::string_view kPlain = "default";
constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

void put_template(NamedTemplates& templates, const std::string& name, const Json* text) {
  require(
      text != nullptr && text->is_string(),
      ErrorCode::kCorruptData,
      "chat_template {}: got {}, expected a string",
      quote(name),
      text != nullptr ? describe_json(*text) : "nothing"
  );
  templates[name] = text->get<std::string>();
}

// A text, a list of {"name", "template"}, or templates by name.
NamedTemplates templates_in(const Json& value) {
  NamedTemplates templates;
  if (value.is_object()) {
    for (const auto& [name, text] : value.items()) {
      put_template(templates, name, &text);
    }
  } else if (value.is_array()) {
    for (const Json& entry : value) {
      const Json* name = find_member(entry, "name");
      const bool is_named = name != nullptr && name->is_string();
      put_template(
          templates,
          is_named ? name->get<std::string>() : std::string(),
          is_named ? find_member(entry, "template") : nullptr
      );
    }
  } else if (!value.is_null()) {
    put_template(templates, std::string(kPlain), &value);
  }
  return templates;
}

NamedTemplates find_templates(const text::ModelTexts& texts, const text::TokenizerConfig& config) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 18;
  constexpr std::string_view kJinja = "chat_template.jinja";
  constexpr std::string_view kJson = "chat_template.json";
  NamedTemplates templates;
  if (texts.has(kJinja)) {
    templates[std::string(kPlain)] = texts.read(kJinja, kMostBytes);
  }
  for (const std::string& file : text::additional_chat_templates(texts)) {
    templates[std::filesystem::path(file).stem().string()] = texts.read(file, kMostBytes);
  }
  if (!templates.empty()) {
    return templates;
  }
  templates = templates_in(config.chat_template);
  if (templates.empty() && texts.has(kJson)) {
    const Json json = texts.read_json(kJson);
    const Json* value = find_member(json, "chat_template");
    return value != nullptr ? templates_in(*value) : NamedTemplates();
  }
  return templates;
}

// A name that is part of a key: other characters than ASCII letters and digits become "_".
std::string key_name(std::string name) {
  for (char& c : name) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    c = is_plain ? c : '_';
  }
  return name;
}

}  // namespace

Metadata template_metadata(const text::ModelTexts& texts, const text::TokenizerConfig& config) {
  NamedTemplates templates = find_templates(texts, config);
  for (const auto& [name, text] : templates) {
    require_utf8(text, fmt::format("chat template {}", quote(name)));
  }
  Metadata pairs;
  if (auto plain = templates.extract(std::string(kPlain)); !plain.empty()) {
    pairs.push_back({std::string(kTemplateKey), std::move(plain.mapped())});
  }
  NamedTemplates by_key;
  for (auto& [name, text] : templates) {
    by_key.emplace(key_name(name), std::move(text));
  }
  std::vector<std::string> names;
  for (auto& [name, text] : by_key) {
    names.push_back(name);
    pairs.push_back({fmt::format("{}.{}", kTemplateKey, name), std::move(text)});
  }
  if (!names.empty()) {
    pairs.push_back({fmt::format("{}s", kTemplateKey), std::move(names)});
  }
  return pairs;
}

}  // namespace saker::load::gguf
