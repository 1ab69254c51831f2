// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tokens by the text they stand for.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace saker::text {

class Tokenizer;

inline constexpr std::size_t kMaxSearchedTexts = 256;

// The ids, ascending, of all tokens whose text holds one of `texts`. Decodes the whole vocabulary.
// Throws kInvalidArgument for an empty text, which all tokens hold, and for too many, kCorruptData
// where that takes too long.
std::vector<std::int32_t> tokens_with(
    const Tokenizer& tokenizer, std::span<const std::string> texts
);

}  // namespace saker::text
