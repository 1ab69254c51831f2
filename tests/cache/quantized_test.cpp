// SPDX-License-Identifier: Apache-2.0
// Caches whose rows are codes.
#include "saker/cache/kv.h"
#include "saker/cache/window.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace saker::cache {
namespace {

const kernels::KvShape kShape{2, 64, 96, mx::bfloat16, 8};  // NOLINT(readability-identifier-naming)

KeyValues random_rows(int count, std::uint64_t seed) {
  const auto normal = [&](int width, std::uint64_t stream) {
    return mx::random::normal({1, 2, count, width}, mx::bfloat16, mx::random::key(seed + stream));
  };
  return {normal(64, 0), normal(96, 100)};
}

bool same(const mx::array& a, const mx::array& b) {
  return mx::array_equal(a, b).item<bool>();
}

// Whether `got` is what MLX makes of `rows`, [1, H_kv, S, D].
bool are_codes_of(const kernels::QuantizedRows& got, const mx::array& rows, int group) {
  const auto expected = mx::quantize(rows, group, 8);
  return got.bits == 8 && got.group_size == group && same(got.codes, expected[0]) &&
         same(got.scales, expected[1]) && same(got.biases, expected[2]);
}

mx::array rows_of(const mx::array& rows, int first, int last) {
  return mx::slice(rows, {0, 0, first, 0}, {1, 2, last, rows.shape(3)});
}

TEST(QuantizedCaches, GiveCodesAsMlxMakesThem) {
  KVCache cache(kShape);
  EXPECT_EQ(cache.kind(), "QuantizedKVCache");
  EXPECT_FALSE(cache.quantized_view().has_value());
  const KeyValues rows = random_rows(80, 1);
  cache.update(rows.keys, rows.values);
  const auto view = cache.quantized_view();
  ASSERT_TRUE(view.has_value());
  EXPECT_TRUE(are_codes_of(view->keys, cache.view()->keys, 64));
  EXPECT_TRUE(are_codes_of(view->values, rows.values, 32));
  EXPECT_TRUE(mx::allclose(cache.view()->keys, rows.keys, 0, 0.06).item<bool>());
  EXPECT_FALSE(KVCache({2, 64, 64, mx::bfloat16}).quantized_view().has_value());
}

TEST(QuantizedCaches, CommittedRowsOnlyAreSeenAndRollingBackForgets) {
  KVCache cache(kShape);
  const KeyValues rows = random_rows(70, 2);
  cache.update(rows.keys, rows.values);
  const auto copy = cache.copy();
  cache.begin();
  const KeyValues other = random_rows(10, 3);
  cache.update(other.keys, other.values);
  EXPECT_TRUE(are_codes_of(cache.quantized_view()->values, rows.values, 32));
  EXPECT_TRUE(same(cache.quantized_view()->keys.codes, copy->quantized_view()->keys.codes));
  cache.commit(4);
  const auto both = mx::concatenate({rows.values, rows_of(other.values, 0, 4)}, 2);
  EXPECT_TRUE(are_codes_of(cache.quantized_view()->values, both, 32));
  EXPECT_TRUE(are_codes_of(copy->quantized_view()->values, rows.values, 32));
  cache.trim(4);
  cache.begin();
  cache.update(other.keys, other.values);
  cache.roll_back();
  EXPECT_TRUE(are_codes_of(cache.quantized_view()->values, rows.values, 32));
}

TEST(QuantizedCaches, BoundedOnesKeepTheFirstAndTheNewestRows) {
  WindowCache cache(kShape, 70, 4);
  EXPECT_EQ(cache.kind(), "QuantizedRotatingKVCache");
  const KeyValues rows = random_rows(300, 4);
  cache.update(rows.keys, rows.values);
  const auto expected =
      mx::concatenate({rows_of(rows.values, 0, 4), rows_of(rows.values, 234, 300)}, 2);
  EXPECT_TRUE(are_codes_of(cache.quantized_view()->values, expected, 32));
}

}  // namespace
}  // namespace saker::cache
