// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/windows.h"

#include <algorithm>

namespace saker::engine {

std::size_t window_count(std::size_t count, std::size_t context, std::size_t stride) {
  return count <= context ? 1 : (count - context + stride - 1) / stride + 1;
}

std::vector<Window> cut_windows(std::size_t count, std::size_t context, std::size_t stride) {
  std::vector<Window> windows;
  std::size_t scored = 0;  // Tokens of the text scored so far.
  for (std::size_t begin = 0; scored < count; begin += stride) {
    const std::size_t end = std::min(begin + context, count);
    if (end - begin >= 2) {
      windows.push_back({begin, std::max(scored, begin), end});
    }
    scored = end;
  }
  return windows;
}

}  // namespace saker::engine
