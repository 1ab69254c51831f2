// SPDX-License-Identifier: Apache-2.0
#pragma once

// What transformers' tokenizer classes know that files leave out: the texts of special tokens, and
// whether the class builds its vocabulary anew. A folder's class follows from tokenizer_config.json
// and from the model type, as AutoTokenizer chooses it.

#include "saker/base/json.h"
#include "saker/text/model_texts.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace saker::text {

struct DefaultToken {
  std::string_view name;  // "eos_token"
  std::string_view text;
};

struct TokenizerClass {
  std::string_view name;
  std::span<const DefaultToken> defaults;  // Where the files lack the name; null there means none.
  // Tokens that only tokenizer.json adds are none where another file lists tokens.
  bool builds_anew = false;
  // Special tokens lose what a file says of spaces around them.
  bool plain_specials = false;
  // For vocabularies of bytes: a setting of tokenizer_config.json replaces that of tokenizer.json.
  bool sets_prefix_space = false;
  // What cuts text into words where there is no tokenizer.json (vocabulary_files.h); empty:
  // GPT-2's.
  std::string_view word_pattern;
  bool composes = false;  // Text is brought to NFC before.
};

// `tokenizer_config` is an object. Files that cannot be read count as missing.
const TokenizerClass& tokenizer_class(const ModelTexts& texts, const Json& tokenizer_config);

}  // namespace saker::text
