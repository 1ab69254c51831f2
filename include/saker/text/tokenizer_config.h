// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tokens from the files beside tokenizer.json: tokenizer_config.json, special_tokens_map.json and
// added_tokens.json, read as transformers does. The last two count only if the first has no
// `added_tokens_decoder`. Each may be missing. Damaged values are left out with a warning, since
// they are not needed for ids in and ids out.

#include "saker/base/json/json.h"
#include "saker/text/model_texts.h"
#include "saker/text/tokenizer_class.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace saker::text {

struct TokenizerConfig {
  std::map<std::string, std::string>
      special_tokens;  // "bos_token" -> "<s>"; defaults come from the class.
  bool add_bos_token = false;
  bool add_eos_token = false;            // For texts of vectors; prompts get none.
  Json chat_template;                    // As written; null without one.
  Json response_template;                // As written; null without one.
  Json added_tokens;                     // For Tokenizer, in the form of rust/src/added_tokens.rs.
  std::vector<std::string> warnings;     // One line each.
  const TokenizerClass* kind = nullptr;  // Null if no files were read.
  std::string damage;                    // Why tokenizer_config.json can't be read, if so.

  std::optional<std::string> special_token(const std::string& name) const;  // Its text.
};

TokenizerConfig load_tokenizer_config(const ModelTexts& texts);  // As above.

}  // namespace saker::text
