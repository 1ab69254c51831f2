// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/quantized.h"

#include "saker/base/error.h"
#include "saker/caches/rotating.h"

#include "tests/caches/token_rows.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace saker::caches {
namespace {

using testing::expect_error;

mx::array wide_rows(const Ids& ids) {
  return mx::broadcast_to(token_rows(ids), {1, 1, static_cast<int>(ids.size()), 64});
}

Ids append_wide(Cache& cache, const Ids& ids) {
  return ids_of(mx::round(cache.update(wide_rows(ids), wide_rows(ids)).values));
}

TEST(CachesQuantized, Q1ATrimmedRowIsReplaced) {
  QuantizedKVCache cache({.group_size = 64, .bits = 8});
  EXPECT_EQ(append_wide(cache, {1, 2, 3, 4}), numbers(1, 4));
  EXPECT_EQ(cache.trim(3), 3);
  EXPECT_EQ(append_wide(cache, {9}), (Ids{1, 9}));
  EXPECT_EQ(cache.meta_state(), (Texts{"2", "64", "8"}));
  EXPECT_EQ(cache.state().size(), 6U);
  EXPECT_EQ(cache.quantized_state()->keys.weight.shape(), (mx::Shape{1, 1, 2, 16}));
}

TEST(CachesQuantized, Q2OffsetAndRowsConverge) {
  QuantizedKVCache cache({.group_size = 64, .bits = 8});
  append_wide(cache, numbers(0, 5));
  const auto state = cache.state();
  EXPECT_EQ(from_state("QuantizedKVCache", state, {"3", "64", "8"})->state()[0].shape(2), 3);
  EXPECT_EQ(from_state("QuantizedKVCache", state, {"7", "64", "8"})->offset(), 5);
  auto uneven = state;
  uneven[4] = mx::slice(state[4], {0, 0, 0, 0}, {1, 1, 2, 1});
  EXPECT_EQ(from_state("QuantizedKVCache", uneven, {"5", "64", "8"})->offset(), 2);
  auto other = state;
  other.resize(5, state[0]);
  expect_error(ErrorCode::kCorruptData, {}, [&] {
    from_state("QuantizedKVCache", other, {"5", "64", "8"});
  });
  expect_error(ErrorCode::kCorruptData, {}, [&] {
    from_state("QuantizedKVCache", {}, {"1", "64", "8"});
  });
  expect_error(ErrorCode::kInvalidArgument, {"7 bits"}, [] { QuantizedKVCache({.bits = 7}); });
  expect_error(ErrorCode::kInvalidArgument, {"multiples of 64"}, [&] { append(cache, {1}); });
}

TEST(CachesQuantized, ARingOfQuantizedRowsTurnsAsAPlainOne) {
  QuantizedRotatingKVCache cache(8, 4, {.group_size = 32, .bits = 8});
  RotatingKVCache plain(8, 4);
  for (const int count : {1, 1, 5, 1, 1, 1, 1, 1, 3, 1, 12, 1, 1}) {
    const Ids ids = numbers(static_cast<int>(plain.offset()), count);
    EXPECT_EQ(append_wide(cache, ids), append(plain, ids));
  }
  auto meta = plain.meta_state();
  meta.insert(meta.end(), {"32", "8"});
  EXPECT_EQ(cache.meta_state(), meta);
  const auto again = from_state(cache.kind(), cache.state(), meta);
  EXPECT_EQ(append_wide(*again, {50}), append(plain, {50}));
  meta[2] = "3";
  expect_error(ErrorCode::kCorruptData, {}, [&] { again->from_serialized(cache.state(), meta); });
  EXPECT_LT(cache.nbytes(), 8U * 64 * 4 * 2);
}

// Codes of rows that are multiples of their number, with scales but no biases: what is left of an
// affine state where the biases are 0.
std::vector<mx::array> without_biases(const std::vector<mx::array>& state) {
  return {state[0], state[1], state[3], state[4]};
}

mx::array zero_biased(const QuantizedRows& rows) {
  return mx::dequantize(rows.weight, rows.scales, mx::zeros_like(rows.scales), 64, 8);
}

TEST(CachesQuantized, StatesWithoutBiasesStayAsTheyAre) {
  QuantizedKVCache made({.group_size = 64, .bits = 8});
  append_wide(made, numbers(1, 5));
  const auto state = without_biases(made.state());
  const auto cache = from_state("QuantizedKVCache", state, {"5", "64", "8"});
  ASSERT_EQ(cache->state_count(), 4U);
  const auto rows = cache->as_quantized()->quantized_state();
  EXPECT_FALSE(rows->keys.biases.has_value());
  EXPECT_FALSE(rows->values.biases.has_value());
  EXPECT_TRUE(mx::array_equal(rows->values.scales, state[3]).item<bool>());
  const auto again = from_state(cache->kind(), cache->state(), cache->meta_state());
  for (std::size_t i = 0; i < state.size(); ++i) {
    EXPECT_TRUE(mx::array_equal(again->state()[i], state[i]).item<bool>());
  }
  EXPECT_EQ(again->trim(2), 2);
  EXPECT_EQ(again->copy()->state()[2].shape(2), 3);
  auto shorter = state;
  shorter[3] = mx::slice(state[3], {0, 0, 0, 0}, {1, 1, 2, 1});
  EXPECT_EQ(from_state("QuantizedKVCache", shorter, {"5", "64", "8"})->offset(), 2);
}

// Rows without biases are as if they were 0, and new ones bring theirs.
TEST(CachesQuantized, RowsAreAppendedToAStateWithoutBiases) {
  QuantizedKVCache made({.group_size = 64, .bits = 8});
  append_wide(made, numbers(1, 3));
  const auto state = without_biases(made.state());
  const auto ring_meta = Texts{"0", "8", "3", "3", "64", "8"};
  for (const auto& cache :
       {from_state("QuantizedKVCache", state, {"3", "64", "8"}),
        from_state("QuantizedRotatingKVCache", state, ring_meta)}) {
    const auto held = zero_biased(cache->as_quantized()->quantized_state()->keys);
    const auto rows = cache->update(wide_rows({9}), wide_rows({9}));
    EXPECT_EQ(rows.keys.shape(2), 4);
    EXPECT_TRUE(
        mx::array_equal(mx::slice(rows.keys, {0, 0, 0, 0}, {1, 1, 3, 64}), held).item<bool>()
    );
    EXPECT_EQ(ids_of(mx::round(rows.keys)).back(), 9);
    EXPECT_EQ(cache->state_count(), 6U);
  }
}

// MLX's float formats have bytes as scales and no biases.
TEST(CachesQuantized, FloatFormatsOfMlx) {
  struct Format {
    int bits;
    int group;
    const char* mode;
  };

  for (const auto [bits, group, mode] :
       {Format{4, 16, "nvfp4"}, Format{4, 32, "mxfp4"}, Format{8, 32, "mxfp8"}}) {
    SCOPED_TRACE(bits * 100 + group);
    QuantizedKVCache cache({.group_size = group, .bits = bits, .scales = Scales::kBytes});
    QuantizedRotatingKVCache ring(
        4, 0, {.group_size = group, .bits = bits, .scales = Scales::kBytes}
    );
    for (Cache* each : {static_cast<Cache*>(&cache), static_cast<Cache*>(&ring)}) {
      EXPECT_EQ(append_wide(*each, {1, 2}), (Ids{1, 2}));
      EXPECT_EQ(append_wide(*each, {3}), (Ids{1, 2, 3}));
      EXPECT_EQ(each->state_count(), 4U);
      EXPECT_EQ(each->state()[1].dtype(), mx::uint8);
      const auto again = from_state(each->kind(), each->state(), each->meta_state());
      EXPECT_EQ(again->as_quantized()->mode(), mode);
      EXPECT_EQ(append_wide(*again, {4}), numbers(1, 4));
    }
  }
  expect_error(ErrorCode::kInvalidArgument, {"8 bits in groups of 64"}, [] {
    QuantizedKVCache({.scales = Scales::kBytes});
  });
}

TEST(CachesQuantized, StatesThatContradictThemselves) {
  QuantizedKVCache bytes({.group_size = 32, .bits = 8, .scales = Scales::kBytes});
  append_wide(bytes, {1});
  const auto state = bytes.state();
  const auto refused = [](std::vector<mx::array> arrays, Texts meta) {
    expect_error(ErrorCode::kCorruptData, {}, [&] {
      from_state("QuantizedKVCache", arrays, meta);
    });
  };
  refused(state, {"1", "64", "8"});
  refused(state, {"1", "128", "2"});
  refused(
      {state[0], state[1], state[1], state[2], state[3], state[3]}, {"1", "32", "8"}
  );  // Bytes have no biases.
  refused({state[0], mx::astype(state[1], mx::int32), state[2], state[3]}, {"1", "32", "8"});
  // Keys of one form, values of the other.
  const auto codes = mx::quantize(wide_rows({1}), 32, 8);
  refused({state[0], state[1], codes[0], codes[1]}, {"1", "32", "8"});
  expect_error(ErrorCode::kCorruptData, {"one form"}, [&] {
    bytes.set_state({state[0], state[1], codes[0], codes[1]});
  });
  QuantizedKVCache apart;
  apart.set_state(state);  // Without the meta values that go with it.
  expect_error(ErrorCode::kInvalidArgument, {"no format"}, [&] { append_wide(apart, {2}); });
}

// mlx-swift writes its step first.
TEST(CachesQuantized, ReadsFourMetaValues) {
  QuantizedKVCache made({.group_size = 64, .bits = 8});
  append_wide(made, {1, 2});
  const auto cache = from_state("QuantizedKVCache", made.state(), {"256", "2", "64", "8"});
  EXPECT_EQ(cache->meta_state(), (Texts{"2", "64", "8"}));
  cache->set_meta_state({"256", "1", "64", "8"});
  EXPECT_EQ(cache->offset(), 1);
}

}  // namespace
}  // namespace saker::caches
