// SPDX-License-Identifier: Apache-2.0
#pragma once

// What tokenizer_config.json and special_tokens_map.json say about named tokens, read as
// transformers reads them: the map counts only where the configuration has no
// `added_tokens_decoder`, and then it wins. Both files may be missing.

#include "saker/base/json.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace saker::text {

struct TokenizerConfig {
  std::map<std::string, std::string>
      special_tokens;  // "bos_token" -> "<s>"; all names end in "_token".
  bool add_bos_token = false;
  Json chat_template;  // As written: null, a string, or a list of {"name", "template"}.

  std::optional<std::string> special_token(const std::string& name) const;
};

// Throws kCorruptData for malformed files.
TokenizerConfig load_tokenizer_config(const std::filesystem::path& model_dir);

}  // namespace saker::text
