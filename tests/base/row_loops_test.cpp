// SPDX-License-Identifier: Apache-2.0
#include "saker/base/row_loops.h"

#include "tests/support/each_instruction_set.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace saker {

namespace portable {
extern const RowLoops row_loops_bodies;
}

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_row(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 5.0F);
  std::vector<float> row(size);
  for (float& x : row) {
    x = normal(random);
    if (random() % 20 == 0) {
      x = random() % 2 == 0 ? kNaN : -kInfinity;
    }
  }
  return row;
}

TEST(RowLoops, MaxOfEveryPlaceAndLength) {
  for (std::size_t size = 0; size < 200; ++size) {
    std::vector<float> row(size, kNaN);
    EXPECT_EQ(row_loops().max(row.data(), size), -kInfinity);
    for (std::size_t i = 0; i < size; ++i) {
      row.assign(size, -3.0F);
      row[i] = -2.0F;
      EXPECT_EQ(row_loops().max(row.data(), size), -2.0F);
    }
  }
}

TEST(RowLoops, EveryInstructionSetGivesTheSameBits) {
  testing::for_each_instruction_set([](InstructionSet /*set*/) {
    const RowLoops& best = row_loops();
    const RowLoops& plain = portable::row_loops_bodies;
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
      const auto row = random_row(seed * 3, seed);
      const float max = plain.max(row.data(), row.size());
      EXPECT_EQ(best.max(row.data(), row.size()), max);
      EXPECT_EQ(
          std::bit_cast<std::uint64_t>(best.exp_sum(row.data(), row.size(), 20.0)),
          std::bit_cast<std::uint64_t>(plain.exp_sum(row.data(), row.size(), 20.0))
      );
      std::vector<float> out[2];
      out[0].resize(row.size());
      out[1].resize(row.size());
      best.exponentials(row.data(), row.size(), out[0].data());
      plain.exponentials(row.data(), row.size(), out[1].data());
      EXPECT_EQ(out[0], out[1]);
    }
  });
}

}  // namespace
}  // namespace saker
