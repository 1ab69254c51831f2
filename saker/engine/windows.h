// SPDX-License-Identifier: Apache-2.0
#pragma once

// Windows over texts that are longer than what one pass sees, as Hugging Face's guide to perplexity
// moves them (https://huggingface.co/docs/transformers/perplexity): each begins `stride` tokens
// after the one before, and a token is scored in the first window that has it. The last window ends
// with the text and may be shorter, so that a token's score does not depend on what follows.

#include <cstddef>
#include <vector>

namespace saker::engine {

// Tokens [begin, end) of the text, of which those from `scored` on are scored.
struct Window {
  std::size_t begin = 0;
  std::size_t scored = 0;
  std::size_t end = 0;

  bool operator==(const Window&) const = default;
};

// How many there are for a text of `count` tokens. REQUIRES: 1 <= stride <= context.
std::size_t window_count(std::size_t count, std::size_t context, std::size_t stride);

// In order. A last token that would be alone in its window, after windows side by side, has none.
// REQUIRES: as above.
std::vector<Window> cut_windows(std::size_t count, std::size_t context, std::size_t stride);

}  // namespace saker::engine
