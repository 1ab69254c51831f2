// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds tokens by their text.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace saker::text {

class Tokenizer;

inline constexpr std::size_t kMaxSearchedTexts = 256;

// The ids, ascending, of all tokens whose text contains one of `texts`. Decodes the whole
// vocabulary. Throws kInvalidArgument for an empty text, which all tokens contain, and for more
// than kMaxSearchedTexts. Throws kCorruptData if decoding takes too long.
std::vector<std::int32_t> tokens_with(
    const Tokenizer& tokenizer, std::span<const std::string> texts
);

}  // namespace saker::text
