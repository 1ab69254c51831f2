// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_vocabulary.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {
namespace {

TEST(PieceIndexTest, FindsManyTextsAsItFindsOne) {
  std::vector<std::string> texts;
  for (int i = 0; i < 3000; ++i) {
    texts.push_back(std::string(static_cast<std::size_t>(i) % 7, 'x') + std::to_string(i));
  }
  texts[10] = "";
  texts[2000] = texts[20];
  const std::vector<std::string_view> all(texts.begin(), texts.end());
  // Every third text is no piece.
  PieceIndex::Pieces pieces;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % 3 != 0) {
      pieces.push_back(all[i]);
    }
  }
  PieceIndex index(pieces.size());
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    index.add(pieces, id);
  }
  const std::vector<std::uint8_t> found = index.find_each(pieces, all);
  ASSERT_EQ(found.size(), all.size());
  std::size_t known = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(found[i] != 0, index.find(pieces, all[i]).has_value()) << all[i];
    known += found[i];
  }
  EXPECT_EQ(known, 2000U);
  EXPECT_TRUE(index.find_each(pieces, {}).empty());
}

TEST(PieceIndexTest, AnEmptyIndexHasNoText) {
  const PieceIndex index(0);
  const std::vector<std::string_view> texts = {"", "a"};
  EXPECT_EQ(index.find_each({}, texts), (std::vector<std::uint8_t>{0, 0}));
}

}  // namespace
}  // namespace saker::load::gguf
