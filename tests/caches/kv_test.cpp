// SPDX-License-Identifier: Apache-2.0
// Cases S, C and M of the cache conformance list (numeric groups of the reference runtimes).
#include "saker/caches/kv.h"

#include "saker/base/error.h"
#include "saker/cache/attention_inputs.h"

#include "tests/caches/token_rows.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

namespace saker::caches {
namespace {

using testing::expect_error;

TEST(CachesKV, S1UpdatesAndTrims) {
  KVCache cache;
  EXPECT_EQ(append(cache, {0, 1, 2, 3}), numbers(0, 4));
  EXPECT_EQ(append(cache, {4, 5}), numbers(0, 6));
  EXPECT_EQ(cache.offset(), 6);
  EXPECT_EQ(cache.trim(2), 2);
  EXPECT_EQ(append(cache, {9}), (Ids{0, 1, 2, 3, 9}));
  EXPECT_EQ(cache.offset(), 5);
  KVCache two;
  append(two, {1, 2});
  EXPECT_EQ(two.trim(10), 2);
  EXPECT_EQ(two.trim(-1), 0);
}

TEST(CachesKV, S2SingleTokensAcrossSteps) {
  KVCache cache;
  for (int i = 0; i < 264; ++i) {
    const auto row = mx::broadcast_to(token_rows(Ids{i}), {1, 2, 1, 3});
    const auto rows = cache.update(row, row);
    if (i == 0 || i == 1 || i >= 255) {
      EXPECT_EQ(ids_of(rows.keys), numbers(0, i + 1));
      EXPECT_EQ(rows.values.shape(), (mx::Shape{1, 2, i + 1, 3}));
    }
  }
  EXPECT_EQ(cache.state()[0].shape(2), 264);
}

TEST(CachesKV, S3CountsAllocatedRows) {
  KVCache cache;
  append(cache, numbers(0, 4));
  EXPECT_EQ(cache.nbytes(), 2U * 256 * 4);
  KVCache longer;
  append(longer, numbers(0, 300));
  EXPECT_EQ(append(longer, {777}).back(), 777);
  EXPECT_EQ(longer.offset(), 301);
}

TEST(CachesKV, S4OneBatchRowGoesToAll) {
  for (const int count : {3, 256}) {
    KVCache cache;
    append_batch(cache, {numbers(0, count), numbers(1000, count)});
    cache.trim(1);
    const auto rows = append_batch(cache, {{5}});
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].back(), 5);
    EXPECT_EQ(rows[1].back(), 5);
    EXPECT_EQ(rows[1].front(), 1000);
    EXPECT_EQ(append_batch(cache, {{6, 7}})[1].back(), 7);
  }
}

TEST(CachesKV, S5RowsMustBelongTogether) {
  KVCache cache;
  append(cache, {1, 2});
  const auto two = token_rows(Ids{1, 2});
  const auto three = token_rows(Ids{1, 2, 3});
  const auto both = token_rows(std::vector<Ids>{{1, 2}, {3, 4}});
  expect_error(ErrorCode::kInvalidArgument, {}, [&] { cache.update(two, three); });
  expect_error(ErrorCode::kInvalidArgument, {}, [&] { cache.update(two, both); });
  expect_error(ErrorCode::kInvalidArgument, {}, [&] { cache.update(both, both); });
  expect_error(ErrorCode::kCorruptData, {}, [&] { cache.set_state({two, three}); });
  expect_error(ErrorCode::kCorruptData, {}, [&] { cache.set_state({two}); });
  EXPECT_EQ(cache.offset(), 2);
  EXPECT_EQ(state_ids(cache), std::vector<Ids>{numbers(1, 2)});
  KVCache wider;
  wider.update(two, mx::broadcast_to(two, {1, 1, 2, 5}));
  EXPECT_EQ(wider.state()[1].shape(3), 5);
}

TEST(CachesKV, AppendingWritesInPlace) {
  KVCache cache;
  const auto rows = mx::ones({1, 1, 300, 4});
  cache.update(rows, rows);
  cache.materialize();
  const auto address = [&] {
    auto state = cache.state()[0];
    state.eval();
    return state.data<float>();
  };
  const float* before = address();
  for (int i = 0; i < 3; ++i) {
    mx::eval(cache.update(mx::ones({1, 1, 1, 4}), mx::ones({1, 1, 1, 4})).keys);
    cache.materialize();
  }
  EXPECT_EQ(address(), before);
}

TEST(CachesKV, CopiesAndResultsStayAsTheyWere) {
  KVCache cache;
  append(cache, {1, 2});
  const auto copy = cache.copy();
  const auto rows = token_rows(Ids{3});
  const auto seen = cache.update(rows, rows).keys;
  cache.trim(1);
  append(cache, {4});
  EXPECT_EQ(ids_of(seen), numbers(1, 3));
  EXPECT_EQ(append(*copy, {9}), (Ids{1, 2, 9}));
  EXPECT_EQ(state_ids(cache), (std::vector<Ids>{{1, 2, 4}}));
}

TEST(CachesChunked, C1DropsTheFront) {
  ChunkedKVCache cache(4);
  append(cache, numbers(0, 6));
  cache.maybe_trim_front();
  EXPECT_EQ(cache.offset(), 6);
  EXPECT_EQ(cache.meta_state(), (Texts{"4", "2"}));
  EXPECT_EQ(state_ids(cache), std::vector<Ids>{numbers(2, 4)});
  // Restored at start + rows: the reference restores offset 4 and then gives 2, 3, 6 only.
  const auto restored = from_state("ChunkedKvCache", cache.state(), cache.meta_state());
  EXPECT_EQ(restored->offset(), 6);
  for (Cache* each : {static_cast<Cache*>(&cache), restored.get()}) {
    EXPECT_EQ(append(*each, {6}), numbers(2, 5));
    EXPECT_EQ(each->offset(), 7);
  }
}

TEST(CachesChunked, C2CountsValidRowsOnly) {
  // Older references count the buffer's 256 rows here and then start at 252.
  ChunkedKVCache cache(4);
  append(cache, {0});
  cache.maybe_trim_front();
  EXPECT_EQ(cache.meta_state(), (Texts{"4", "0"}));
  ChunkedKVCache unbounded(std::nullopt);
  append(unbounded, numbers(0, 9));
  unbounded.maybe_trim_front();
  EXPECT_EQ(unbounded.meta_state(), (Texts{"None", "0"}));
}

TEST(CachesChunked, C3TrimsUpToTheStart) {
  ChunkedKVCache cache(4);
  append(cache, numbers(0, 6));
  cache.maybe_trim_front();
  EXPECT_EQ(cache.trim(3), 3);
  EXPECT_EQ(cache.trim(10), 1);
  EXPECT_EQ(cache.offset(), 2);
}

TEST(CachesMasks, M1M2CausalWindows) {
  EXPECT_EQ(bits(cache::causal_mask(3, 0, 0)), "100/110/111");
  EXPECT_EQ(bits(cache::causal_mask(2, 3, 0)), "11110/11111");
  EXPECT_EQ(bits(cache::causal_mask(4, 0, 2)), "1000/1100/0110/0011");
  EXPECT_EQ(bits(cache::causal_mask(4, 0, 4)), bits(cache::causal_mask(4, 0, 0)));
  EXPECT_EQ(bits(cache::causal_mask(4, 0, INT32_MAX)), bits(cache::causal_mask(4, 0, 0)));
  EXPECT_EQ(bits(cache::causal_mask(2, 3, 5)), bits(cache::causal_mask(2, 3, 0)));
}

TEST(CachesMasks, M3UnboundedRule) {
  KVCache cache;
  append(cache, numbers(0, 3));
  EXPECT_EQ(bits(cache.make_mask(1)), "none");
  EXPECT_EQ(bits(cache.make_mask(3)), "causal");
  EXPECT_EQ(bits(cache.make_mask(3, {}, MaskForm::kArray)), "111100/111110/111111");
  EXPECT_EQ(bits(cache.make_mask(2, 4)), "11110/01111");
}

}  // namespace
}  // namespace saker::caches
