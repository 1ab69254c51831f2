// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace saker::engine {
namespace {

// The loop of Hugging Face's guide: for begin in range(0, count, stride) ...
std::vector<Window> by_the_guide(std::size_t count, std::size_t context, std::size_t stride) {
  std::vector<Window> windows;
  std::size_t previous_end = 0;
  for (std::size_t begin = 0; begin < count; begin += stride) {
    const std::size_t end = std::min(begin + context, count);
    windows.push_back({begin, std::max(previous_end, begin), end});
    previous_end = end;
    if (end == count) {
      break;
    }
  }
  return windows;
}

TEST(Windows, AreThoseOfTheGuide) {
  for (const std::size_t context : {2, 5, 16}) {
    for (std::size_t stride = 1; stride < context; ++stride) {
      for (std::size_t count = 2; count < 60; ++count) {
        const auto windows = cut_windows(count, context, stride);
        EXPECT_EQ(windows, by_the_guide(count, context, stride));
        EXPECT_EQ(windows.size(), window_count(count, context, stride));
      }
    }
  }
}

TEST(Windows, LieSideBySideWithoutAStrideOfTheirOwn) {
  const std::vector<Window> expected = {{0, 0, 4}, {4, 4, 8}, {8, 8, 10}};
  EXPECT_EQ(cut_windows(10, 4, 4), expected);
  // A token without one before it is not scored.
  EXPECT_EQ(cut_windows(9, 4, 4).size(), 2U);
}

}  // namespace
}  // namespace saker::engine
