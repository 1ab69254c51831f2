// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/packing/weight_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace saker::kernels {
namespace {

struct Piece {
  std::shared_ptr<std::byte> bytes;
  std::size_t size;
  int mark;
};

bool is_marked(const Piece& piece) {
  for (std::size_t i = 0; i < piece.size; ++i) {
    if (std::to_integer<int>(piece.bytes.get()[i]) != piece.mark) {
      return false;
    }
  }
  return true;
}

TEST(WeightBytes, PiecesOfEverySizeAreAlignedAndApart) {
  std::vector<Piece> pieces;
  int mark = 0;
  // Small ones, shared ones that fill more than one slab, and one too large to share.
  for (const std::size_t size : {0U, 1U, 1000U, 262144U, 262145U, 3000001U, 16777216U, 16777217U}) {
    for (int i = 0; i < 3; ++i) {
      pieces.push_back({allocate_weight_bytes(size), size, ++mark});
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pieces.back().bytes.get()) % 64, 0U) << size;
      if (size > 0) {
        std::memset(pieces.back().bytes.get(), mark, size);
      }
    }
  }
  for (const Piece& piece : pieces) {
    EXPECT_TRUE(is_marked(piece)) << piece.size;
  }
}

TEST(WeightBytes, WeightsOutliveTheOthersOfTheirSlab) {
  constexpr std::size_t kSize = 1U << 20;
  Piece kept;
  for (int i = 0; i < 200; ++i) {
    Piece piece = {allocate_weight_bytes(kSize), kSize, i};
    std::memset(piece.bytes.get(), i, kSize);
    if (i == 3) {
      kept = piece;
    }
  }
  EXPECT_TRUE(is_marked(kept));
}

// Neighbours share one owner.
TEST(WeightBytes, MemoryComesBackWithTheLastWeight) {
  constexpr std::size_t kSize = 1U << 20;
  std::weak_ptr<std::byte> gone;
  {
    const auto first = allocate_weight_bytes(kSize);
    const auto second = allocate_weight_bytes(kSize);
    gone = first;
    EXPECT_EQ(second.get() - first.get(), static_cast<std::ptrdiff_t>(kSize));
  }
  EXPECT_TRUE(gone.expired());
}

}  // namespace
}  // namespace saker::kernels
