// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tokenizer without tokenizer.json: vocab.json and merges.txt, which older programs save for
// vocabularies of bytes. The pipeline is that of the tokenizer's class.

#include "saker/text/tokenizer_class.h"

#include <string>

namespace saker::text {

bool has_vocabulary_files(const ModelTexts& texts, const TokenizerClass& kind);

// Converts them to a tokenizer.json. Throws kCorruptData. REQUIRES: has_vocabulary_files.
std::string read_vocabulary_files(const ModelTexts& texts, const TokenizerClass& kind);

}  // namespace saker::text
