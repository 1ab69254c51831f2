// SPDX-License-Identifier: Apache-2.0
#pragma once

// Windows over texts that are longer than one pass, as in Hugging Face's guide to perplexity
// (https://huggingface.co/docs/transformers/perplexity). Each begins `stride` tokens after the one
// before. A token is scored in the first window that has it. The last window ends with the text and
// may be shorter, so a token's score does not depend on what follows.

#include <cstddef>
#include <vector>

namespace saker::engine {

// Tokens [begin, end) of the text; tokens from `scored` on are scored.
struct Window {
  std::size_t begin = 0;
  std::size_t scored = 0;
  std::size_t end = 0;

  bool operator==(const Window&) const = default;
};

// Number of windows for a text of `count` tokens. REQUIRES: 1 <= stride <= context.
std::size_t window_count(std::size_t count, std::size_t context, std::size_t stride);

// Returns the windows in order. With windows side by side, a last token that would be alone in its
// window gets none. REQUIRES: as above.
std::vector<Window> cut_windows(std::size_t count, std::size_t context, std::size_t stride);

}  // namespace saker::engine
