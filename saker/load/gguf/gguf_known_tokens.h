// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tokens that are known by their texts, as in llama.cpp: they end answers, or are control tokens
// whatever type the file gives them. Existing files rely on it: many name only one end token or
// have wrong types.

#include "saker/load/gguf/gguf_vocabulary.h"

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::gguf {

struct KnownTokens {
  std::vector<std::size_t> endings;  // Each once, the file's own first.
  std::vector<std::pair<std::size_t, TokenKind>> kinds;
};

// True for texts that end an answer in every vocabulary, unless another text speaks against it.
bool is_known_ending(std::string_view text);

KnownTokens find_known_tokens(const Vocabulary& vocabulary);

}  // namespace saker::load::gguf
