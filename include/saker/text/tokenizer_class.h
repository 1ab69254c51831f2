// SPDX-License-Identifier: Apache-2.0
#pragma once

// Knowledge of transformers' tokenizer classes that files leave out: texts of special tokens, and
// whether the class rebuilds its vocabulary. A folder's class is chosen by tokenizer_config.json
// and the model type, as AutoTokenizer does.

#include "saker/base/json/json.h"
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
  std::span<const DefaultToken> defaults;  // Where files lack the name; null means none.
  // If another file lists tokens, those that only tokenizer.json adds are dropped.
  bool builds_anew = false;
  // Special tokens lose the flags for spaces around them that a file gives.
  bool plain_specials = false;
  // For vocabularies of bytes: tokenizer_config.json's setting replaces tokenizer.json's.
  bool sets_prefix_space = false;
  // The pattern that splits text into words without tokenizer.json (vocabulary_files.h); empty:
  // GPT-2's.
  std::string_view word_pattern;
  bool composes = false;  // Text is normalized to NFC first.
};

// REQUIRES: `tokenizer_config` is an object. Files that cannot be read count as missing.
const TokenizerClass& tokenizer_class(const ModelTexts& texts, const Json& tokenizer_config);

}  // namespace saker::text
