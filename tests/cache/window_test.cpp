// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/window.h"

#include "saker/base/error.h"

#include "tests/cache/rows.h"
#include <gtest/gtest.h>

namespace saker::cache {
namespace {

TEST(WindowCache, KeepsTheNewestRows) {
  WindowCache cache(test_shape(), 4);
  EXPECT_EQ(cache.kind(), "RotatingKVCache");
  EXPECT_EQ(cache.max_size(), 4);
  EXPECT_TRUE(same_rows(update(cache, 3), numbers(0, 3)));
  EXPECT_TRUE(same_rows(update(cache, 1), numbers(0, 4)));
  EXPECT_TRUE(same_rows(update(cache, 1), numbers(1, 4)));
  // Each of three new rows sees four: the oldest of them the three before it.
  EXPECT_TRUE(same_rows(update(cache, 3), numbers(2, 6)));
  EXPECT_TRUE(same_rows(*cache.view(), numbers(4, 4)));
  EXPECT_EQ(cache.offset(), 8);
}

TEST(WindowCache, AlwaysKeepsTheFirstRows) {
  WindowCache cache(test_shape(), 5, 2);
  update(cache, 200);
  EXPECT_TRUE(same_rows(*cache.view(), {0, 1, 197, 198, 199}));
  EXPECT_TRUE(same_rows(update(cache, 1), {0, 1, 198, 199, 200}));
  EXPECT_TRUE(same_rows(update(cache, 2), {0, 1, 199, 200, 201, 202}));
  const auto span = cache.append(0, 1);
  EXPECT_EQ(span.window, 3);
  EXPECT_EQ(span.keep, 2);
}

// Two first rows and a window of three, by appends that are longer than both.
TEST(WindowCache, LongAppendsLeaveTheFirstAndTheNewestRows) {
  WindowCache once(test_shape(), 5, 2);
  update(once, 6);
  EXPECT_TRUE(same_rows(*once.view(), {0, 1, 3, 4, 5}));
  WindowCache twice(test_shape(), 5, 2);
  update(twice, 8);
  EXPECT_TRUE(same_rows(*twice.view(), {0, 1, 5, 6, 7}));
  update(twice, 6);
  EXPECT_TRUE(same_rows(*twice.view(), {0, 1, 11, 12, 13}));
  EXPECT_EQ(twice.offset(), 14);
}

TEST(WindowCache, ShortSequencesHaveEveryRowOnce) {
  WindowCache cache(test_shape(), 6, 4);
  EXPECT_TRUE(same_rows(update(cache, 3), numbers(0, 3)));
  EXPECT_TRUE(same_rows(update(cache, 2), numbers(0, 5)));
  EXPECT_TRUE(same_rows(*cache.view(), numbers(0, 5)));
}

TEST(WindowCache, MemoryIsBounded) {
  WindowCache cache(test_shape(), 8);
  pass(cache, 1);
  const auto one_page = cache.nbytes();
  for (int i = 0; i < 1000; ++i) {
    pass(cache, 1);
  }
  EXPECT_LE(cache.nbytes(), 2 * one_page);
}

TEST(WindowCache, CanBeTrimmedUntilRowsAreForgotten) {
  WindowCache cache(test_shape(), 4);
  update(cache, 3);
  EXPECT_TRUE(cache.is_trimmable());
  EXPECT_EQ(cache.trim(1), 1);
  update(cache, 2);
  EXPECT_FALSE(cache.is_trimmable());
  EXPECT_EQ(cache.trim(1), 0);
  EXPECT_TRUE(same_rows(*cache.view(), numbers(0, 4)));
}

TEST(WindowCache, RollBackAfterManyRowsRestoresTheWindow) {
  WindowCache cache(test_shape(), 4, 1);
  update(cache, 150);
  cache.begin();
  pass(cache, 100);
  EXPECT_TRUE(same_rows(*cache.view(), {0, 147, 148, 149}));
  cache.roll_back();
  EXPECT_TRUE(same_rows(*cache.view(), {0, 147, 148, 149}));
  cache.begin();
  pass(cache, 90);
  cache.commit(3);
  EXPECT_TRUE(same_rows(*cache.view(), {0, 150, 151, 152}));
}

TEST(WindowCache, CopyIsIndependent) {
  WindowCache cache(test_shape(), 4);
  update(cache, 100);
  const auto other = cache.copy();
  update(cache, 200);
  EXPECT_TRUE(same_rows(*other->view(), numbers(96, 4)));
  EXPECT_TRUE(same_rows(update(*other, 1), numbers(97, 4)));
}

TEST(WindowCache, RefusesSizesThatMakeNoSense) {
  EXPECT_THROW(WindowCache(test_shape(), 0), Error);
  EXPECT_THROW(WindowCache(test_shape(), 4, 4), Error);
  EXPECT_THROW(WindowCache(test_shape(), 4, -1), Error);
}

TEST(WindowCache, MasksOfSeveralRows) {
  WindowCache cache(test_shape(), 4);
  EXPECT_EQ(cache.make_mask(4, 0).kind, Mask::Kind::kCausal);
  EXPECT_EQ(cache.make_mask(5, 0).kind, Mask::Kind::kArray);
  update(cache, 10);
  const auto mask = cache.make_mask(2, 0);
  ASSERT_EQ(mask.kind, Mask::Kind::kArray);
  EXPECT_EQ(mask_row(mask, 0), (std::vector<bool>{true, true, true, true, false}));
  EXPECT_EQ(mask_row(mask, 1), (std::vector<bool>{false, true, true, true, true}));
  EXPECT_EQ(update(cache, 2).keys.shape(2), 5);
}

TEST(WindowCache, MasksOfOneRow) {
  WindowCache cache(test_shape(), 4);
  EXPECT_EQ(cache.make_mask(1, 0).kind, Mask::Kind::kNone);
  EXPECT_EQ(cache.make_mask(1, 2).kind, Mask::Kind::kNone);
  update(cache, 2);
  EXPECT_EQ(mask_row(cache.make_mask(1, 2), 0), (std::vector<bool>{false, true, true}));
  update(cache, 9);
  EXPECT_EQ(mask_row(cache.make_mask(1, 3), 0), (std::vector<bool>{false, true, true, true}));
  EXPECT_EQ(cache.make_mask(1, 4).kind, Mask::Kind::kNone);
}

}  // namespace
}  // namespace saker::cache
