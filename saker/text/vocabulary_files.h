// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tokenizer without tokenizer.json: vocab.json and merges.txt, which older programs save for
// vocabularies of bytes, with the pipeline that the tokenizer's class has.

#include "saker/text/tokenizer_class.h"

#include <string>

namespace saker::text {

bool has_vocabulary_files(const ModelTexts& texts, const TokenizerClass& kind);

// As a tokenizer.json. Throws kCorruptData. REQUIRES: has_vocabulary_files.
std::string read_vocabulary_files(const ModelTexts& texts, const TokenizerClass& kind);

}  // namespace saker::text
