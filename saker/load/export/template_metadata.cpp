// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/template_metadata.h"

#include "saker/base/utf8.h"
#include "saker/text/chat_template.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

using NamedTemplates = std::map<std::string, std::string>;

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

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
  NamedTemplates templates = text::chat_template_sources(texts, config);
  for (const auto& [name, text] : templates) {
    require_utf8(text, fmt::format("chat template {}", quote(name)));
  }
  Metadata pairs;
  if (auto plain = templates.extract("default"); !plain.empty()) {
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
