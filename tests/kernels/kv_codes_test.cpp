// SPDX-License-Identifier: Apache-2.0
// Quantized pages against mx::quantize.
#include "saker/base/error.h"
#include "saker/kernels/storage/kv_store.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace saker::kernels {
namespace {

bool same(const mx::array& a, const mx::array& b) {
  return a.dtype() == b.dtype() && mx::array_equal(a, b).item<bool>();
}

bool equals_mlx(const QuantizedRows& got, const mx::array& rows, const KvShape& shape) {
  const int group = rows.shape(2) % 64 == 0 ? 64 : 32;
  const auto expected = mx::quantize(mx::astype(rows, shape.dtype), group, shape.bits);
  return got.group_size == group && got.bits == shape.bits && same(got.codes, expected[0]) &&
         same(got.scales, expected[1]) && same(got.biases, expected[2]);
}

// Numbers of one kind: usual ones, far from 0, all the same, whole numbers with ties, tiny ones.
mx::array random_rows(int kind, const mx::Shape& shape, std::uint64_t seed) {
  auto normal = mx::random::normal(shape, mx::float32, mx::random::key(seed));
  switch (kind) {
    case 0:
      return normal;
    case 1:
      return normal * mx::array(0.01F) + mx::array(100.0F);
    case 2:
      return mx::full(shape, static_cast<float>(seed % 3) - 1.0F);
    case 3:
      return mx::round(normal * mx::array(3.0F)) * mx::array(0.5F);
    default:
      return normal * mx::array(1e-9F);
  }
}

struct CodeCase {
  KvShape shape;
  int rows;
  mx::array keys;
  mx::array values;
};

CodeCase random_case() {
  CodeCase c{{}, *rc::gen::inRange(1, 150), mx::array(0), mx::array(0)};
  c.shape.kv_heads = *rc::gen::inRange(1, 4);
  c.shape.head_dim = *rc::gen::element(32, 64, 96, 128, 160, 256);
  c.shape.value_head_dim = *rc::gen::element(32, 64, 96, 128, 256);
  c.shape.dtype = *rc::gen::element(mx::bfloat16, mx::bfloat16, mx::float32);
  c.shape.bits = *rc::gen::element(8, 4);
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1 << 20);
  const int kind = *rc::gen::inRange(0, 5);
  c.keys = random_rows(kind, {c.shape.kv_heads, c.rows, c.shape.head_dim}, seed);
  c.values = random_rows(kind, {c.shape.kv_heads, c.rows, c.shape.value_head_dim}, seed + 1);
  mx::eval(c.keys, c.values);
  return c;
}

mx::array first_rows(const mx::array& rows) {
  const int count = std::min(rows.shape(1), kPageRows);
  return mx::slice(rows, {0, 0, 0}, {rows.shape(0), count, rows.shape(2)});
}

RC_GTEST_PROP(KvCodesTest, CodesScalesAndBiasesAreThoseOfMlx, ()) {
  const CodeCase c = random_case();
  KvStore store(c.shape, KvLayout::kPaged);
  store.prepare(0, c.rows);
  store.write(0, c.keys, c.values);
  RC_ASSERT(equals_mlx(store.quantized_values(0, c.rows), c.values, c.shape));
  RC_ASSERT(equals_mlx(store.quantized_keys(0, c.rows), store.keys(0, c.rows), c.shape));
  const auto first = first_rows(c.keys);
  RC_ASSERT(equals_mlx(store.quantized_keys(0, first.shape(1)), first, c.shape));
}

// A few elements of real keys are large and nearly the same in all rows: what is left of them is
// quantized as finely as the others.
TEST(KvCodesTest, LargeElementsThatAllKeysShareCostNoPrecision) {
  for (const auto& dtype : {mx::bfloat16, mx::float32}) {
    const KvShape shape{2, 64, 64, dtype, 4};
    const auto normal = mx::random::normal({2, 300, 64}, mx::float32, mx::random::key(1));
    const auto large = mx::arange(64) == mx::array(30);
    const auto shared = mx::where(large, mx::array(128.0F), mx::array(0.0F));
    KvStore store(shape, KvLayout::kPaged);
    store.prepare(0, 300);
    store.write(0, normal + shared, normal);
    const auto missed = mx::abs(mx::astype(store.keys(0, 300), mx::float32) - shared - normal);
    const auto others = mx::where(large, mx::array(0.0F), missed);
    EXPECT_LT(mx::max(others).item<float>(), 0.4F);
    EXPECT_LT(mx::max(missed).item<float>(), dtype == mx::bfloat16 ? 0.8F : 0.4F);
  }
}

// Rows of one page that another sequence began are quantized anew where the offsets differ.
TEST(KvCodesTest, RowsKeepTheirMeaningUnderOtherOffsets) {
  const KvShape shape{1, 64, 64, mx::float32, 8};
  const auto rows = [](float at, std::uint64_t seed) {
    const auto normal = mx::random::normal({1, 100, 64}, mx::float32, mx::random::key(seed));
    return normal + mx::array(at);
  };
  const auto filled = [&](const mx::array& both) {
    KvStore store(shape, KvLayout::kPaged);
    store.prepare(0, 100);
    store.write(0, both, both);
    return store;
  };
  KvStore ours = filled(rows(20.0F, 1));
  const auto before = ours.keys(0, 80);
  mx::eval(before);
  ours.adopt(filled(rows(-20.0F, 2)), 80);
  EXPECT_TRUE(mx::allclose(ours.keys(0, 80), before, 0, 0.3).item<bool>());
}

// What was there before leaves nothing behind.
RC_GTEST_PROP(KvCodesTest, RowsAreReplacedWhole, ()) {
  const CodeCase c = random_case();
  KvStore store(c.shape, KvLayout::kPaged);
  store.prepare(0, c.rows);
  const auto before = [&](int width) {
    return random_rows(0, {c.shape.kv_heads, c.rows, width}, 77);
  };
  store.write(0, before(c.shape.head_dim), before(c.shape.value_head_dim));
  const KvStore copy(store);
  store.prepare(0, c.rows);
  store.write(0, c.keys, c.values);
  KvStore fresh(c.shape, KvLayout::kPaged);
  fresh.prepare(0, c.rows);
  fresh.write(0, c.keys, c.values);
  RC_ASSERT(same(store.keys(0, c.rows), fresh.keys(0, c.rows)));
  RC_ASSERT(equals_mlx(store.quantized_values(0, c.rows), c.values, c.shape));
  const auto first = first_rows(before(c.shape.head_dim));
  RC_ASSERT(equals_mlx(copy.quantized_keys(0, first.shape(1)), first, c.shape));
}

TEST(KvCodesTest, RowsAreWhatTheirCodesStandFor) {
  for (const int bits : {8, 4}) {
    const KvShape shape{2, 128, 96, mx::float32, bits};
    const auto keys = random_rows(0, {2, 70, 128}, 3);
    const auto values = random_rows(0, {2, 70, 96}, 4);
    KvStore store(shape, KvLayout::kPaged);
    store.prepare(0, 70);
    store.write(0, keys, values);
    const auto parts = mx::quantize(values, 32, bits);
    const auto expected = mx::dequantize(parts[0], parts[1], parts[2], 32, bits);
    const auto page = [&](const mx::array& rows, int first, int last) {
      return mx::slice(rows, {0, first, 0}, {2, last, rows.shape(2)});
    };
    EXPECT_TRUE(same(store.keys(0, 64), page(keys, 0, 64)));  // The first page as it is.
    EXPECT_TRUE(same(store.values(0, 64), page(values, 0, 64)));
    const auto coded = page(expected, 64, 70);
    EXPECT_TRUE(mx::allclose(store.values(64, 6), coded, 1e-6, 1e-6).item<bool>());
    const float step = bits == 8 ? 0.03F : 0.4F;
    EXPECT_TRUE(mx::allclose(store.keys(0, 70), keys, 0, step).item<bool>());
  }
}

TEST(KvCodesTest, PagesAreAsSmallAsTheirCodes) {
  for (const int bits : {8, 4}) {
    KvStore store(KvShape{2, 128, 64, mx::bfloat16, bits}, KvLayout::kPaged);
    store.prepare(64, 64);
    const int groups = (bits == 4 ? 4 : 2) + 1;
    const int row_bytes = (128 + 64) * bits / 8 + groups * 2 * 2;  // With scales and biases.
    const int offsets = 2 * 128 + 64;                              // And their step.
    EXPECT_EQ(store.nbytes(), 2U * (64 * row_bytes + offsets));
    store.prepare(0, 1);
    EXPECT_EQ(store.nbytes(), 2U * (64 * row_bytes + offsets) + 64 * 2 * (128 + 64) * 2);
  }
}

// Quantizing must not depend on what is not a number, nor crash on it.
TEST(KvCodesTest, NumbersThatAreNotFiniteStayInTheirGroup) {
  const KvShape shape{1, 128, 128, mx::bfloat16, 8};
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float odd : {std::nanf(""), infinity, -infinity, 3e38F}) {
    const auto at = mx::reshape(mx::arange(128) == mx::array(70), {1, 1, 128});
    const auto rows = mx::where(at, mx::array(odd), random_rows(0, {1, 5, 128}, 9));
    KvStore store(shape, KvLayout::kPaged);
    store.prepare(0, 5);
    store.write(0, rows, rows);
    const auto first = mx::slice(store.keys(0, 5), {0, 0, 0}, {1, 5, 64});
    EXPECT_TRUE(mx::all(mx::isfinite(first)).item<bool>());
  }
}

TEST(KvCodesTest, WhatCannotBeQuantizedIsAnError) {
  EXPECT_THROW(KvStore(KvShape{1, 64, 64, mx::bfloat16, 5}), Error);
  EXPECT_THROW(KvStore(KvShape{1, 64, 64, mx::bfloat16, 0}), Error);
  EXPECT_THROW(KvStore(KvShape{1, 64, 64, mx::bfloat16, 8}, KvLayout::kContiguous), Error);
  KvStore plain(KvShape{1, 64, 64, mx::bfloat16, 16});
  plain.prepare(0, 1);
  EXPECT_THROW(plain.quantized_keys(0, 1), Error);
  KvStore narrow(KvShape{1, 16, 16, mx::bfloat16, 8});
  narrow.prepare(0, 1);
  EXPECT_THROW(narrow.quantized_keys(0, 1), Error);
  EXPECT_NO_THROW(narrow.keys(0, 1));
}

}  // namespace
}  // namespace saker::kernels
