// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/kv.h"

#include "saker/base/error.h"

#include "tests/cache/rows.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cstdint>

namespace saker::cache {
namespace {

TEST(KVCache, StartsEmpty) {
  const KVCache cache(test_shape());
  EXPECT_EQ(cache.kind(), "KVCache");
  EXPECT_TRUE(cache.is_empty());
  EXPECT_FALSE(cache.view().has_value());
  EXPECT_EQ(cache.nbytes(), 0U);
  EXPECT_FALSE(cache.max_size().has_value());
}

TEST(KVCache, KeepsAllRows) {
  KVCache cache(test_shape());
  EXPECT_TRUE(same_rows(update(cache, 70), numbers(0, 70)));
  EXPECT_TRUE(same_rows(update(cache, 1), numbers(0, 71)));
  EXPECT_EQ(cache.offset(), 71);
  EXPECT_EQ(cache.rope_offset(), 71);
  EXPECT_TRUE(same_rows(*cache.view(), numbers(0, 71)));
  EXPECT_GT(cache.nbytes(), 71U * kHeads * (kDim + kValueDim) * sizeof(float) - 1);
}

TEST(KVCache, SpanNamesPositionsAndNoBound) {
  KVCache cache(test_shape());
  pass(cache, 3);
  const auto span = cache.append(5, 2);
  EXPECT_EQ(span.first_row, 5);
  EXPECT_EQ(span.row_count, 2);
  EXPECT_EQ(span.first_position, 3);
  EXPECT_EQ(span.window, 0);
  EXPECT_EQ(span.keep, 0);
}

TEST(KVCache, ConvertsToTheStoresDtype) {
  auto shape = test_shape();
  shape.dtype = mx::bfloat16;
  KVCache cache(shape);
  const auto rows = numbered_rows({0, 1});
  const auto seen = cache.update(rows.keys, rows.values);
  EXPECT_EQ(seen.keys.dtype(), mx::bfloat16);
  EXPECT_TRUE(mx::array_equal(mx::astype(seen.keys, mx::float32), rows.keys).item<bool>());
}

TEST(KVCache, TrimForgetsTheNewestRows) {
  KVCache cache(test_shape());
  update(cache, 10);
  EXPECT_TRUE(cache.is_trimmable());
  EXPECT_EQ(cache.trim(4), 4);
  EXPECT_TRUE(same_rows(*cache.view(), numbers(0, 6)));
  EXPECT_EQ(cache.trim(-1), 0);
  EXPECT_EQ(cache.trim(100), 6);
  EXPECT_TRUE(cache.is_empty());
}

TEST(KVCache, ViewIsUnchangedByAnOpenTransaction) {
  KVCache cache(test_shape());
  update(cache, 3);
  cache.begin();
  pass(cache, 5);
  EXPECT_EQ(cache.offset(), 8);
  EXPECT_TRUE(same_rows(*cache.view(), numbers(0, 3)));
  cache.commit(2);
  EXPECT_EQ(cache.offset(), 5);
  EXPECT_TRUE(same_rows(*cache.view(), numbers(0, 5)));
}

TEST(KVCache, RollBackForgetsTheTransaction) {
  KVCache cache(test_shape());
  update(cache, 3);
  cache.begin();
  update(cache, 70);
  cache.roll_back();
  EXPECT_TRUE(same_rows(*cache.view(), numbers(0, 3)));
  EXPECT_TRUE(same_rows(update(cache, 2), numbers(0, 5)));
}

TEST(KVCache, RefusesTransactionsOutOfOrder) {
  KVCache cache(test_shape());
  EXPECT_THROW(cache.commit(0), Error);
  EXPECT_THROW(cache.roll_back(), Error);
  cache.begin();
  EXPECT_THROW(cache.begin(), Error);
  EXPECT_THROW(cache.trim(1), Error);
  EXPECT_THROW(cache.clear(), Error);
  update(cache, 2);
  cache.commit(2);
  EXPECT_EQ(cache.offset(), 2);
}

TEST(KVCache, CommitsAtMostWhatWasWritten) {
  KVCache cache(test_shape());
  update(cache, 3);
  cache.begin();
  update(cache, 2);
  cache.commit(99);
  EXPECT_TRUE(same_rows(*cache.view(), numbers(0, 5)));
  cache.begin();
  update(cache, 2);
  cache.commit(-1);
  EXPECT_TRUE(same_rows(*cache.view(), numbers(0, 5)));
}

TEST(KVCache, ClearGivesBackMemory) {
  KVCache cache(test_shape());
  const std::size_t empty = cache.nbytes();
  update(cache, 200);
  const auto other = cache.copy();
  const auto rows = cache.snapshot(0);
  EXPECT_EQ(rows->nbytes(), cache.nbytes());
  cache.clear();
  EXPECT_TRUE(cache.is_empty());
  EXPECT_EQ(cache.nbytes(), empty);
  EXPECT_FALSE(cache.view().has_value());
  EXPECT_TRUE(same_rows(*other->view(), numbers(0, 200)));
  EXPECT_TRUE(same_rows(update(cache, 2), numbers(0, 2)));
}

TEST(KVCache, CopyIsIndependent) {
  KVCache cache(test_shape());
  update(cache, 5);
  const auto other = cache.copy();
  const auto shared = numbered_rows({100, 101});
  other->trim(1);
  other->update(shared.keys, shared.values);
  update(cache, 1);
  EXPECT_TRUE(same_rows(*cache.view(), numbers(0, 6)));
  EXPECT_TRUE(same_rows(*other->view(), {0, 1, 2, 3, 100, 101}));
}

TEST(KVCache, CopyOfAnOpenTransactionHasTheCommittedRows) {
  KVCache cache(test_shape());
  update(cache, 5);
  cache.begin();
  update(cache, 3);
  const auto other = cache.copy();
  EXPECT_EQ(other->offset(), 5);
  EXPECT_TRUE(same_rows(*other->view(), numbers(0, 5)));
}

TEST(KVCache, RefusesRowsOfAnotherShape) {
  KVCache cache(test_shape());
  const auto rows = numbered_rows({0, 1});
  EXPECT_THROW(cache.update(rows.values, rows.keys), Error);
  EXPECT_THROW(cache.update(rows.keys, numbered(numbers(0, 3), kValueDim, 1.0F)), Error);
  EXPECT_THROW(cache.update(mx::squeeze(rows.keys, 0), mx::squeeze(rows.values, 0)), Error);
  EXPECT_TRUE(cache.is_empty());
}

// Indices whose first row is no number, once multiplied.
TEST(KVCache, PagesBehindTheRowsAreRefused) {
  const KVCache cache(test_shape());
  for (const std::int64_t index : {std::int64_t{2}, std::int64_t{1} << 58, INT64_MAX}) {
    testing::expect_error(ErrorCode::kCorruptData, {"is not one of rows 0 to 100"}, [&] {
      cache.snapshot_of({{{index, 64}}, [](auto) {}}, 0, 100);
    });
  }
}

TEST(KVCache, Masks) {
  KVCache cache(test_shape());
  EXPECT_EQ(cache.make_mask(1, 0).kind, Mask::Kind::kNone);
  EXPECT_EQ(cache.make_mask(4, 0).kind, Mask::Kind::kCausal);
  update(cache, 2);
  const auto mask = cache.make_mask(2, 2);
  ASSERT_EQ(mask.kind, Mask::Kind::kArray);
  EXPECT_EQ(mask_row(mask, 0), (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(mask_row(mask, 1), (std::vector<bool>{false, false, true, true}));
  // A window always gives an array, also for one row.
  EXPECT_EQ(mask_row(cache.make_mask(1, 2), 0), (std::vector<bool>{false, true, true}));
}

}  // namespace
}  // namespace saker::cache
