// SPDX-License-Identifier: Apache-2.0
// Rings, case by case as ollama's MLX runner has them (its cache tests; R1 to R9 and R16 are our
// numbers). One row is written as an update, several as a concat. Our rings lie in time order, so
// expected rows stand oldest first; where a ring buffer is longer than the window, `update` gives
// the longer one and `view` the window.
#include "saker/cache/window.h"

#include "tests/cache/rows.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace saker::cache {
namespace {

using Rows = std::vector<int>;

// A ring whose rows count from 1, as the table's.
class Ring {
 public:
  explicit Ring(int window) : cache_(test_shape(), window) {}

  // Writes the next rows up to number `last`, all at once; whether attention gets `expected`.
  bool concat(int last, const Rows& expected) {
    const int first = static_cast<int>(cache_.offset()) + 1;
    const KeyValues content = numbered_rows(numbers(first, last - first + 1));
    return same_rows(cache_.update(content.keys, content.values), expected);
  }

  void update_to(int last) {
    for (int row = static_cast<int>(cache_.offset()) + 1; row <= last; ++row) {
      const KeyValues content = numbered_rows({row});
      cache_.update(content.keys, content.values);
    }
  }

  bool has(const Rows& rows) const { return same_rows(*cache_.view(), rows); }

  WindowCache& cache() { return cache_; }

 private:
  WindowCache cache_;
};

TEST(RingCases, R1UpdatesOnly) {
  Ring ring(4);
  for (int n = 1; n <= 9; ++n) {
    ring.update_to(n);
    EXPECT_EQ(ring.cache().offset(), n);
    EXPECT_TRUE(ring.has(numbers(std::max(1, n - 3), std::min(n, 4)))) << n;
  }
}

TEST(RingCases, R2ConcatInTheMiddleOfATurn) {
  Ring ring(4);
  EXPECT_TRUE(ring.concat(3, {1, 2, 3}));
  ring.update_to(9);
  EXPECT_TRUE(ring.concat(11, {7, 8, 9, 10, 11}));
  ring.update_to(12);
  EXPECT_TRUE(ring.has({9, 10, 11, 12}));
}

TEST(RingCases, R3ConcatAfterConcat) {
  Ring ring(4);
  EXPECT_TRUE(ring.concat(6, numbers(1, 6)));
  EXPECT_TRUE(ring.concat(9, {4, 5, 6, 7, 8, 9}));
  ring.update_to(10);
  EXPECT_TRUE(ring.has({7, 8, 9, 10}));
}

TEST(RingCases, R4GrownMemoryDoesNotLeak) {
  Ring ring(512);
  EXPECT_TRUE(ring.concat(3, {1, 2, 3}));
  ring.update_to(4);
  EXPECT_TRUE(ring.concat(7, numbers(1, 7)));
}

TEST(RingCases, R5ConcatAfterGoingBack) {
  Ring ring(8);
  EXPECT_TRUE(ring.concat(2, {1, 2}));
  ring.update_to(8);
  EXPECT_TRUE(ring.cache().restore(nullptr, 2));
  const KeyValues content = numbered_rows({9, 10, 11});
  EXPECT_TRUE(same_rows(ring.cache().update(content.keys, content.values), {1, 2, 9, 10, 11}));
  EXPECT_EQ(ring.cache().offset(), 5);
}

TEST(RingCases, R6ConcatUpToTheWindow) {
  Ring ring(4);
  EXPECT_TRUE(ring.concat(2, {1, 2}));
  EXPECT_TRUE(ring.concat(4, {1, 2, 3, 4}));
}

TEST(RingCases, R7LongConcats) {
  Ring ring(4);
  EXPECT_TRUE(ring.concat(8, numbers(1, 8)));
  EXPECT_TRUE(ring.concat(16, numbers(6, 11)));
  EXPECT_TRUE(ring.concat(20, numbers(14, 7)));
  ring.update_to(21);
  EXPECT_TRUE(ring.has({18, 19, 20, 21}));
}

TEST(RingCases, R8TurnsAndConcats) {
  Ring ring(4);
  EXPECT_TRUE(ring.concat(2, {1, 2}));
  ring.update_to(7);
  EXPECT_TRUE(ring.concat(10, numbers(5, 6)));
  ring.update_to(14);
  EXPECT_EQ(ring.cache().offset(), 14);
  EXPECT_TRUE(ring.concat(16, numbers(12, 5)));
  EXPECT_EQ(ring.cache().offset(), 16);
}

TEST(RingCases, R9Offsets) {
  Ring ring(4);
  ring.concat(3, {});
  EXPECT_EQ(ring.cache().offset(), 3);
  for (int n = 4; n <= 8; ++n) {
    ring.update_to(n);
    EXPECT_EQ(ring.cache().offset(), n);
  }
  ring.concat(10, {});
  EXPECT_EQ(ring.cache().offset(), 10);
  ring.concat(17, {});
  EXPECT_EQ(ring.cache().offset(), 17);
}

TEST(RingCases, R16SnapshotAfterOneRow) {
  Ring ring(4);
  ring.update_to(11);
  const auto rows = ring.cache().snapshot(0);
  ring.update_to(30);
  EXPECT_TRUE(ring.cache().restore(rows.get(), 11));
  EXPECT_TRUE(ring.has({8, 9, 10, 11}));  // Positions 7 to 10.
}

}  // namespace
}  // namespace saker::cache
