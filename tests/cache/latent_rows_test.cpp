// SPDX-License-Identifier: Apache-2.0
// Caches whose stores have values in keys: outside they have two parts, like any cache.
#include "saker/base/error.h"
#include "saker/cache/kv.h"
#include "saker/cache/serialized_rows.h"
#include "saker/cache/window.h"

#include "tests/cache/rows.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <memory>

namespace saker::cache {
namespace {

using testing::expect_error;

// The parts that are shown are those of test_shape().
kernels::KvShape latent_shape(mx::Dtype dtype = mx::float32) {
  return {
      .kv_heads = kHeads,
      .head_dim = kDim + kValueDim,
      .value_head_dim = kDim,
      .dtype = dtype,
      .bits = kernels::kUnquantizedBits,
      .values_in_keys = true,
  };
}

TEST(LatentRows, AreShownInTwoParts) {
  KVCache cache(latent_shape());
  EXPECT_EQ(cache.kind(), "KVCache");
  EXPECT_TRUE(same_rows(update(cache, 3), numbers(0, 3)));
  EXPECT_TRUE(same_rows(update(cache, 70), numbers(0, 73)));
  cache.begin();
  update(cache, 5);
  EXPECT_TRUE(same_rows(*cache.view(), numbers(0, 73)));
  cache.commit(2);
  EXPECT_TRUE(same_rows(*cache.view(), numbers(0, 75)));
  EXPECT_EQ(cache.trim(15), 15);
  EXPECT_TRUE(same_rows(*cache.view(), numbers(0, 60)));
}

TEST(LatentRows, TakeTheMemoryOfKeysAlone) {
  KVCache latent(latent_shape(mx::bfloat16));
  update(latent, 64);
  EXPECT_EQ(latent.nbytes(), 64U * kHeads * (kDim + kValueDim) * 2U);
  EXPECT_EQ(kernels::kv_row_bytes(latent_shape(mx::bfloat16)), 2U * kHeads * (kDim + kValueDim));
}

TEST(LatentRows, GoThroughFilesAndSnapshots) {
  KVCache cache(latent_shape());
  update(cache, 100);
  const auto file = serialize(cache);
  EXPECT_EQ(file.state.at(0).shape, (std::vector<std::int64_t>{1, kHeads, 100, kDim}));
  EXPECT_EQ(file.state.at(1).shape, (std::vector<std::int64_t>{1, kHeads, 100, kValueDim}));
  KVCache other(latent_shape());
  restore(other, file);
  EXPECT_TRUE(same_rows(*other.view(), numbers(0, 100)));
  KVCache third(latent_shape());
  const auto snapshot = cache.snapshot(0);
  ASSERT_TRUE(third.restore(snapshot.get(), 90));
  EXPECT_TRUE(same_rows(*third.view(), numbers(0, 90)));
  update(third, 3);
  EXPECT_TRUE(same_rows(*cache.copy()->view(), numbers(0, 100)));
  EXPECT_TRUE(same_rows(*third.view(), numbers(0, 93)));
}

TEST(LatentRows, FitWindows) {
  WindowCache cache(latent_shape(), 8, 4);
  update(cache, 12);
  EXPECT_TRUE(same_rows(*cache.view(), {0, 1, 2, 3, 8, 9, 10, 11}));
}

TEST(LatentRows, RefuseOtherShapesAndCodes) {
  KVCache cache(latent_shape());
  const auto rows = numbered_rows({0, 1});
  expect_error(ErrorCode::kInvalidArgument, {"keys", "4"}, [&] {
    cache.update(rows.values, rows.values);
  });
  expect_error(ErrorCode::kInvalidArgument, {"values", "6"}, [&] {
    cache.update(rows.keys, rows.keys);
  });
  auto shape = latent_shape();
  shape.bits = 8;
  expect_error(ErrorCode::kUnsupported, {"8 bits", "expected 16"}, [&] { KVCache coded(shape); });
  shape = latent_shape();
  shape.value_head_dim = shape.head_dim + 1;
  expect_error(ErrorCode::kInvalidArgument, {"values", "keys"}, [&] { KVCache wide(shape); });
}

}  // namespace
}  // namespace saker::cache
