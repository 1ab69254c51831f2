// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/rope.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

#include "tests/kernels/attend_runs.h"
#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace saker::kernels {
namespace {

struct Tables {
  mx::array cos;
  mx::array sin;
};

Tables tables(int rows, int half) {
  const auto positions = mx::reshape(mx::arange(0, rows, 1, mx::float32), {rows, 1});
  const auto exponents = mx::arange(0, half, 1, mx::float32) / mx::array(static_cast<float>(half));
  const auto angles = positions / mx::power(mx::array(100.0F), exponents);
  return {mx::cos(angles), mx::sin(angles)};
}

class RopeTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets, RopeTest, testing::ValuesIn(instruction_sets()), [](const auto& set) { return set.param; }
);

TEST_P(RopeTest, AgreesWithTheReference) {
  for (const int half : {1, 5, 8, 32, 40, 64}) {
    for (const int rest : {0, 3, 48}) {
      const int width = 2 * half + rest;
      const auto x = mx::random::normal({9, 3, width}, mx::float32, mx::random::key(half));
      const Tables t = tables(9, half);
      const auto got = rope(x, t.cos, t.sin);
      EXPECT_TRUE(mx::allclose(got, rope_reference(x, t.cos, t.sin), 1e-6, 1e-6).item<bool>())
          << half << " " << rest;
    }
  }
}

TEST_P(RopeTest, NeighboursAgreeWithTheReference) {
  for (const int half : {1, 5, 8, 40}) {
    for (const int rest : {0, 3}) {
      const int width = 2 * half + rest;
      const auto x = mx::random::normal({9, 3, width}, mx::float32, mx::random::key(half));
      const Tables t = tables(9, half);
      const auto expected = rope_reference(x, t.cos, t.sin, RopePairs::kNeighbours);
      const auto got = rope(x, t.cos, t.sin, RopePairs::kNeighbours);
      EXPECT_TRUE(mx::allclose(got, expected, 1e-6, 1e-6).item<bool>()) << half << " " << rest;
      const auto plain = rope_plain(x, std::nullopt, t.cos, t.sin, RopePairs::kNeighbours);
      EXPECT_TRUE(mx::array_equal(plain, expected).item<bool>()) << half << " " << rest;
    }
  }
}

// MLX's operations, which run on a GPU and for rows of other dtypes.
TEST(RopePlain, HasTheBitsOfTheReference) {
  const auto joined = mx::random::normal({9, 400}, mx::bfloat16, mx::random::key(3));
  for (const int half : {1, 5, 32, 64}) {
    for (const int rest : {0, 3}) {
      const int width = 2 * half + rest;
      const auto x = mx::reshape(mx::slice(joined, {0, 7}, {9, 7 + 2 * width}), {9, 2, width});
      const Tables t = tables(9, half);
      const auto got = rope(x, t.cos, t.sin);
      EXPECT_EQ(got.dtype(), mx::bfloat16);
      EXPECT_TRUE(mx::array_equal(got, rope_reference(x, t.cos, t.sin)).item<bool>())
          << half << " " << rest;
    }
  }
}

TEST(RopePlain, WeighsHeadsFirst) {
  const auto q_weight = mx::random::normal({64}, mx::float32, mx::random::key(4));
  const auto k_weight = mx::random::normal({64}, mx::float32, mx::random::key(5));
  const auto weights = weights_of_heads(q_weight, 2, k_weight, 1);
  const auto by_head = mx::stack({q_weight, q_weight, k_weight});
  for (const int rows : {1, 9}) {
    for (const int half : {32, 5}) {
      const auto x = mx::random::normal({rows, 3, 64}, mx::float32, mx::random::key(6));
      const Tables t = tables(rows, half);
      const auto got = rope_plain(mx::expand_dims(x, 0), weights, t.cos, t.sin);
      EXPECT_EQ(got.shape(), mx::Shape({1, rows, 3, 64}));
      const auto expected = rope_reference(x * by_head, t.cos, t.sin);
      EXPECT_TRUE(mx::array_equal(mx::squeeze(got, 0), expected).item<bool>())
          << rows << " " << half;
    }
  }
}

// Turning keeps the length of each pair, and position 0 turns nothing.
TEST_P(RopeTest, Rotates) {
  const auto x = mx::random::normal({20, 2, 32}, mx::float32, mx::random::key(1));
  const Tables t = tables(20, 16);
  const auto got = rope(x, t.cos, t.sin);
  const auto lengths = [](const mx::array& rows) {
    return mx::sum(mx::square(mx::reshape(rows, {20, 2, 2, 16})), 2);
  };
  EXPECT_TRUE(mx::allclose(lengths(got), lengths(x), 1e-5, 1e-6).item<bool>());
  const auto first = [](const mx::array& rows) { return mx::slice(rows, {0, 0, 0}, {1, 2, 32}); };
  EXPECT_EQ(floats_of(first(got)), floats_of(first(x)));
  EXPECT_FALSE(mx::allclose(got, x).item<bool>());
}

TEST_P(RopeTest, RowsAreIndependentAndMayHaveGaps) {
  const auto joined = mx::random::normal({200, 300}, mx::float32, mx::random::key(2));
  const auto x = mx::reshape(mx::slice(joined, {0, 40}, {200, 240}), {200, 4, 50});
  const Tables t = tables(200, 20);
  set_threads(4);
  const auto together = floats_of(rope(x, t.cos, t.sin));
  for (const int row : {0, 7, 199}) {
    const auto cut = [&](const mx::array& rows) {
      return mx::slice(rows, {row, 0}, {row + 1, 20});
    };
    const auto alone = floats_of(
        rope(mx::contiguous(mx::slice(x, {row, 0, 0}, {row + 1, 4, 50})), cut(t.cos), cut(t.sin))
    );
    const std::vector<float> expected(
        together.begin() + row * 200, together.begin() + (row + 1) * 200
    );
    EXPECT_EQ(alone, expected) << row;
  }
}

TEST(RopeChecksTest, WrongShapesAreErrors) {
  const auto x = mx::zeros({4, 2, 16});
  EXPECT_THROW(rope(x, mx::zeros({4, 9}), mx::zeros({4, 9})), Error);
  EXPECT_THROW(rope(x, mx::zeros({3, 8}), mx::zeros({3, 8})), Error);
  EXPECT_THROW(rope(x, mx::zeros({4, 8}), mx::zeros({4, 7})), Error);
  EXPECT_THROW(rope(mx::zeros({4, 16}), mx::zeros({4, 8}), mx::zeros({4, 8})), Error);
}

TEST(RopeChecksTest, OtherDtypesKeepTheirs) {
  const auto x = mx::astype(mx::random::normal({4, 2, 16}), mx::bfloat16);
  const Tables t = tables(4, 8);
  EXPECT_EQ(rope(x, t.cos, t.sin).dtype(), mx::bfloat16);
}

}  // namespace
}  // namespace saker::kernels
