// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/drafters/pending_hidden.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace saker::generate {
namespace {

constexpr int kWidth = 3;

// Rows [first, first + count), whose elements are their numbers; not evaluated.
mx::array rows_from(int first, int count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), static_cast<float>(first));
  return mx::multiply(
      mx::array(numbers.data(), {count, 1}, mx::float32), mx::ones({1, kWidth}, mx::float32)
  );
}

std::vector<float> numbers_of(const mx::array& rows) {
  mx::array dense = mx::contiguous(rows);
  mx::eval(dense);
  EXPECT_EQ(dense.shape(1), kWidth);
  std::vector<float> numbers;
  for (std::size_t i = 0; i < dense.size(); i += kWidth) {
    numbers.push_back(dense.data<float>()[i + kWidth - 1]);
  }
  return numbers;
}

std::vector<float> range(int first, int end) {
  std::vector<float> numbers(static_cast<std::size_t>(end - first));
  std::iota(numbers.begin(), numbers.end(), static_cast<float>(first));
  return numbers;
}

void expect_in_order(int pushed, int popped) {
  PendingHidden kept;
  int in = 0;
  int out = 0;
  while (out < 200) {
    while (kept.size() < popped) {
      kept.push(rows_from(in, pushed));
      in += pushed;
    }
    EXPECT_EQ(kept.nbytes(), static_cast<std::size_t>(in - out) * kWidth * sizeof(float));
    ASSERT_EQ(numbers_of(kept.pop(popped)), range(out, out + popped));
    out += popped;
    EXPECT_EQ(kept.size(), in - out);
  }
}

TEST(PendingHidden, ComeOutInOrderInPiecesOfAnySize) {
  for (const int pushed : {1, 2, 7, 40}) {
    for (const int popped : {1, 3, 16, 64}) {
      expect_in_order(pushed, popped);
    }
  }
}

TEST(PendingHidden, TheLastOfSomeRows) {
  PendingHidden kept;
  kept.push(rows_from(0, 5));
  kept.push(rows_from(5, 3));
  EXPECT_EQ(numbers_of(kept.pop(6, 2)), range(4, 6));
  EXPECT_EQ(numbers_of(kept.pop(2, 1)), range(7, 8));
  EXPECT_EQ(kept.size(), 0);
  EXPECT_EQ(kept.nbytes(), 0U);
}

TEST(PendingHidden, OneRowWaitsForOthers) {
  PendingHidden kept;
  std::vector<mx::array> rows;
  for (int i = 0; i < 40; ++i) {
    rows.push_back(rows_from(i, 1));
    kept.push(rows.back());
  }
  EXPECT_TRUE(rows.front().is_available());
  EXPECT_FALSE(rows.back().is_available());
  const mx::array many = rows_from(40, 100);
  kept.push(many);
  EXPECT_TRUE(rows.back().is_available());
  EXPECT_TRUE(many.is_available());
  EXPECT_EQ(numbers_of(kept.pop(140)), range(0, 140));
}

}  // namespace
}  // namespace saker::generate
