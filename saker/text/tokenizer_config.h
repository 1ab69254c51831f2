// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the files beside tokenizer.json say about tokens: tokenizer_config.json,
// special_tokens_map.json, added_tokens.json, read as transformers reads them. The last two count
// only where the first has no `added_tokens_decoder`. Each may be missing. What is damaged is left
// out with a warning, since ids in and ids out need none of it.

#include "saker/base/json.h"
#include "saker/text/model_texts.h"
#include "saker/text/tokenizer_class.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace saker::text {

struct TokenizerConfig {
  std::map<std::string, std::string>
      special_tokens;  // "bos_token" -> "<s>"; what the files leave out is the class's.
  bool add_bos_token = false;
  Json chat_template;                    // As written; null where there is none.
  Json added_tokens;                     // For Tokenizer, in the form of rust/src/added_tokens.rs.
  std::vector<std::string> warnings;     // One line each.
  const TokenizerClass* kind = nullptr;  // Null where no files were read.
  std::string damage;                    // Why tokenizer_config.json cannot be read at all, if so.

  std::optional<std::string> special_token(const std::string& name) const;
};

TokenizerConfig load_tokenizer_config(const ModelTexts& texts);

}  // namespace saker::text
