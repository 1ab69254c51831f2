// SPDX-License-Identifier: Apache-2.0
// Cases B, BR and X of the cache conformance list.
#include "saker/caches/batch.h"

#include "saker/base/error.h"
#include "saker/caches/batch_rotating.h"
#include "saker/caches/rows.h"

#include "tests/caches/token_rows.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <array>
#include <variant>

namespace saker::caches {
namespace {

using testing::expect_error;
using Rows = std::vector<Ids>;

BatchKVCache three_rows() {
  BatchKVCache cache({1, 3, 0});
  append_batch(cache, {{0, 1, 3, 5}, {0, 0, 0, 7}, {2, 6, 8, 9}});
  return cache;
}

TEST(CachesBatch, B1PositionsByRow) {
  auto cache = three_rows();
  EXPECT_EQ(cache.batch_offset(), (Ids{3, 1, 4}));
  append_batch(cache, {{10}, {11}, {12}});
  EXPECT_EQ(cache.batch_offset(), (Ids{4, 2, 5}));
  EXPECT_EQ(cache.offset(), 5);
  EXPECT_EQ(floats_of(std::get<mx::array>(cache.rope_offset())), (std::vector<float>{4, 2, 5}));
  EXPECT_EQ(cache.trim(2), 2);
  EXPECT_EQ(cache.batch_offset(), (Ids{2, 0, 3}));
  EXPECT_EQ(cache.trim(99), 3);
}

TEST(CachesBatch, B2RightPaddingBecomesLeftPadding) {
  BatchKVCache cache({0, 0});
  cache.prepare({.left = {}, .right = {1, 2}, .lengths = {3, 2}});
  append_batch(cache, {{1, 2, 3, 0}, {4, 5, 0, 0}});
  cache.finalize();
  EXPECT_EQ(state_ids(cache), (Rows{{0, 1, 2, 3}, {0, 0, 4, 5}}));
  EXPECT_EQ(cache.batch_offset(), (Ids{3, 2}));
  EXPECT_EQ(cache.left_padding(), (Ids{1, 2}));
  expect_error(ErrorCode::kInvalidArgument, {}, [&] {
    cache.prepare({.left = {}, .right = {1, 2, 3}, .lengths = {}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"left padding"}, [&] {
    cache.prepare({.left = {1, 1}, .right = {}, .lengths = {}});
  });
}

TEST(CachesBatch, B3B4MasksAreAlwaysArrays) {
  BatchKVCache cache({1, 0});
  append_batch(cache, {{0, 1}, {2, 3}});
  EXPECT_EQ(bits(cache.make_mask(2)), "0110/0111/1110/1111");
  EXPECT_EQ(bits(cache.make_mask(1)), "011/111");
  EXPECT_EQ(cache.make_mask(1).array->shape(), (mx::Shape{2, 1, 1, 3}));
  const Ids none = {0, 0};
  const Ids right = {0, 1};
  EXPECT_EQ(bits(batch_causal_mask(3, 0, {}, none, right)), "100/110/111/100/110/110");
}

TEST(CachesBatch, StateGoesRound) {
  auto cache = three_rows();
  const auto again = from_state("BatchKvCache", cache.state(), {});
  EXPECT_EQ(append_batch(*again, {{1}, {2}, {3}}), append_batch(cache, {{1}, {2}, {3}}));
  auto bad = cache.state();
  bad[3] = mx::array({1.0F, 2.0F, 3.0F});
  expect_error(ErrorCode::kCorruptData, {}, [&] { cache.from_serialized(bad, {}); });
  bad[3] = mx::array({1, 2}, mx::int32);
  expect_error(ErrorCode::kCorruptData, {}, [&] { cache.from_serialized(bad, {}); });
  EXPECT_EQ(cache.batch_offset(), (Ids{4, 2, 5}));
  cache.set_state({});
  EXPECT_EQ(cache.batch_offset(), (Ids{-1, -3, 0}));
  const auto blank = from_state("BatchKVCache", {}, {});
  EXPECT_EQ(append_batch(*blank, {{1}, {2}}), (Rows{{1}, {2}}));
}

TEST(CachesBatch, X1ToX4RowsComeAndGo) {
  auto cache = three_rows();
  cache.filter(Ids{0, 1});
  EXPECT_EQ(state_ids(cache), (Rows{{1, 3, 5}, {0, 0, 7}}));
  EXPECT_EQ(cache.batch_offset(), (Ids{3, 1}));
  EXPECT_EQ(cache.left_padding(), (Ids{0, 2}));
  EXPECT_EQ(cache.offset(), 3);
  EXPECT_EQ(state_ids(cache.extract(0)), (Rows{{1, 3, 5}}));
  EXPECT_EQ(cache.extract(1).offset(), 1);
  EXPECT_EQ(state_ids(cache.extract(1)), (Rows{{7}}));
  BatchKVCache five({0});
  append_batch(five, {numbers(21, 5)});
  cache.extend(five);
  EXPECT_EQ(state_ids(cache), (Rows{{0, 0, 1, 3, 5}, {0, 0, 0, 0, 7}, numbers(21, 5)}));
  EXPECT_EQ(cache.batch_offset(), (Ids{3, 1, 5}));
  EXPECT_EQ(cache.left_padding(), (Ids{2, 4, 0}));
  EXPECT_EQ(cache.offset(), 5);
  cache.filter(Ids{1});
  EXPECT_EQ(state_ids(cache), (Rows{{7}}));
  EXPECT_EQ(cache.batch_offset(), (Ids{1}));
  EXPECT_EQ(cache.left_padding(), (Ids{0}));
  expect_error(ErrorCode::kInvalidArgument, {"batch row 1 of 1"}, [&] { cache.filter(Ids{1}); });
  expect_error(ErrorCode::kInvalidArgument, {}, [&] { cache.extract(-1); });
}

TEST(CachesBatch, X5Merges) {
  KVCache a;
  KVCache b;
  const KVCache empty;
  append(a, {1, 2, 3});
  append(b, {7});
  const std::array<const KVCache*, 3> caches = {&a, &b, &empty};
  const auto merged = BatchKVCache::merge(caches);
  EXPECT_EQ(state_ids(merged), (Rows{{1, 2, 3}, {0, 0, 7}, {0, 0, 0}}));
  EXPECT_EQ(merged.batch_offset(), (Ids{3, 1, 0}));
  EXPECT_EQ(merged.left_padding(), (Ids{0, 2, 3}));
  const std::array<const KVCache*, 2> none = {&empty, &empty};
  EXPECT_TRUE(BatchKVCache::merge(none).is_empty());
  EXPECT_EQ(BatchKVCache::merge(none).left_padding(), (Ids{0, 0}));
}

TEST(CachesBatchRotating, BR1WrapsAndAppends) {
  BatchRotatingKVCache cache(4, {0, 0});
  append_batch(cache, {numbers(0, 3), numbers(0, 3)});
  append_batch(cache, {{3}, {3}});
  EXPECT_EQ(append_batch(cache, {{4}, {4}}), (Rows{{4, 1, 2, 3}, {4, 1, 2, 3}}));
  EXPECT_EQ(cache.left_padding(), (Ids{-1, -1}));
  EXPECT_EQ(append_batch(cache, {{5, 6}, {5, 6}})[1], numbers(2, 5));
  EXPECT_EQ(cache.batch_offset(), (Ids{7, 7}));
  EXPECT_EQ(cache.left_padding(), (Ids{-2, -2}));
  EXPECT_FALSE(cache.is_trimmable());
}

TEST(CachesBatchRotating, BR2OneRowIsARing) {
  BatchRotatingKVCache cache(4, {0});
  RotatingKVCache ring(4);
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(append_batch(cache, {{i}})[0], append(ring, {i}));
  }
}

TEST(CachesBatchRotating, BR3LongPrompts) {
  BatchRotatingKVCache cache(2, {0});
  append_batch(cache, {{10, 20, 30}});
  EXPECT_EQ(append_batch(cache, {{40}}), (Rows{{40, 30}}));
  EXPECT_EQ(cache.meta_state(), (Texts{"2", "4", "1", "true"}));
  EXPECT_EQ(cache.left_padding(), (Ids{-2}));
  const auto again = from_state("BatchRotatingKVCache", cache.state(), {"2", "4", "1", "True"});
  EXPECT_EQ(append_batch(*again, {{50}}), (Rows{{40, 50}}));
}

TEST(CachesBatchRotating, BR4RightPadding) {
  BatchRotatingKVCache cache(8, {0});
  cache.prepare({.left = {}, .right = {1}, .lengths = {2}});
  append_batch(cache, {{10, 20, 30}});
  expect_error(ErrorCode::kInvalidArgument, {"finalize"}, [&] { append_batch(cache, {{1}}); });
  cache.finalize();
  EXPECT_EQ(state_ids(cache), (Rows{{30, 10, 20}}));
  EXPECT_EQ(cache.batch_offset(), (Ids{2}));
  EXPECT_EQ(cache.left_padding(), (Ids{1}));
}

TEST(CachesBatchRotating, BR5RestoresAllOrNothing) {
  BatchRotatingKVCache cache(4, {0});
  append_batch(cache, {{1, 2}});
  const std::vector<Texts> bad = {
      {"4", "2", "99", "false"},
      {"4", "2", "2", "true"},
      {"4", "1", "2", "false"},
      {"0", "2", "2", "false"},
      {"4", "2", "2", "maybe"},
      {"4", "2", "2"},
  };
  for (const Texts& meta : bad) {
    expect_error(ErrorCode::kCorruptData, {}, [&] { cache.from_serialized(cache.state(), meta); });
    EXPECT_EQ(cache.meta_state(), (Texts{"4", "2", "2", "false"}));
  }
  expect_error(ErrorCode::kCorruptData, {}, [&] {
    cache.from_serialized({}, {"4", "0", "0", "true"});
  });
  EXPECT_EQ(append_batch(cache, {{3}}), (Rows{{1, 2, 3}}));
}

TEST(CachesBatchRotating, X6ToX8MergesTurnsAndExtracts) {
  RotatingKVCache six(4);
  RotatingKVCache two(4);
  for (int i = 0; i < 6; ++i) {
    append(six, {i});
  }
  append(two, {10, 11});
  const std::array<const RotatingKVCache*, 2> caches = {&six, &two};
  auto cache = BatchRotatingKVCache::merge(caches);
  EXPECT_EQ(state_ids(cache), (Rows{{2, 3, 4, 5}, {0, 0, 10, 11}}));
  EXPECT_EQ(cache.batch_offset(), (Ids{6, 2}));
  EXPECT_EQ(cache.left_padding(), (Ids{0, 2}));
  EXPECT_EQ(append_batch(cache, {{6}, {12}}), (Rows{{6, 3, 4, 5}, {12, 0, 10, 11}}));
  EXPECT_EQ(cache.batch_offset(), (Ids{7, 3}));
  EXPECT_EQ(cache.left_padding(), (Ids{-1, 1}));
  EXPECT_EQ(cache.meta_state(), (Texts{"4", "5", "1", "true"}));
  const auto first = cache.extract(0);
  const auto second = cache.extract(1);
  EXPECT_EQ(state_ids(first), (Rows{{3, 4, 5, 6}}));
  EXPECT_EQ(first.meta_state(), (Texts{"0", "4", "7", "4"}));
  EXPECT_EQ(state_ids(second), (Rows{{10, 11, 12}}));
  EXPECT_EQ(second.meta_state(), (Texts{"0", "4", "3", "3"}));
  const RotatingKVCache other(5);
  const std::array<const RotatingKVCache*, 2> different = {&six, &other};
  expect_error(ErrorCode::kInvalidArgument, {"5"}, [&] { BatchRotatingKVCache::merge(different); });
}

}  // namespace
}  // namespace saker::caches
