// SPDX-License-Identifier: Apache-2.0
#include "saker/base/blake2b.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace saker {
namespace {

// Of Python's hashlib.blake2b(..., digest_size=16).
TEST(Blake2b, GivesTheDigestsOfOthers) {
  Blake2b hash;
  EXPECT_EQ(hash.hex(), "cae66941d9efbd404e4d88758ea67670");
  hash.add("abc");
  EXPECT_EQ(hash.hex(), "cf4ab791c62b8d2b2109c90275287816");
}

TEST(Blake2b, PiecesDoNotMatter) {
  std::string text;
  for (int i = 0; i < 5 * 256; ++i) {
    text += static_cast<char>(i % 256);
  }
  for (const std::size_t step : {std::size_t{1}, std::size_t{127}, std::size_t{128}, text.size()}) {
    Blake2b hash;
    for (std::size_t at = 0; at < text.size(); at += step) {
      hash.add(std::string_view(text).substr(at, step));
    }
    EXPECT_EQ(hash.hex(), "825c7cfa8fc12c18f57b6046a548db9f") << step;
  }
}

}  // namespace
}  // namespace saker
