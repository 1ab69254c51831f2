// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/serialized_rows.h"

#include "saker/base/error.h"
#include "saker/cache/host_arrays.h"
#include "saker/cache/kv.h"
#include "saker/cache/window.h"

#include "tests/cache/rows.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cache {
namespace {

using Texts = std::vector<std::string>;

// What a ring of mlx-lm holds: rows in this order.
SerializedCache ring(const std::vector<int>& rows, Texts meta) {
  const auto arrays = numbered_rows(rows);
  return {"RotatingKVCache", {to_tensor(arrays.keys), to_tensor(arrays.values)}, std::move(meta)};
}

std::unique_ptr<LayerCache> make_layer(int max_size, int keep) {
  if (max_size == 0) {
    return std::make_unique<KVCache>(test_shape());
  }
  return std::make_unique<WindowCache>(test_shape(), max_size, keep);
}

TEST(SerializedRows, CachesOfALayerAreOneList) {
  const SerializedCache one = ring({1, 2}, {"0", "4", "2", "2"});
  const SerializedCache other = ring({3}, {"0", "4", "1", "1"});
  const auto lists = in_lists({one, other, other, one}, 2);
  ASSERT_EQ(lists.size(), 2U);
  EXPECT_EQ(lists[0].kind, "CacheList");
  const auto caches = without_lists(lists);
  ASSERT_EQ(caches.size(), 4U);
  EXPECT_EQ(caches[1].kind, "RotatingKVCache");
  EXPECT_EQ(caches[1].meta, other.meta);
  EXPECT_EQ(caches[2].state[0].shape, other.state[0].shape);
  EXPECT_EQ(in_lists({one, other}, 1).size(), 2U);
}

RC_GTEST_PROP(SerializedRows, RestoredCachesGoOnAsTheOriginal, ()) {
  const int keep = *rc::gen::inRange(0, 6);
  const int max_size = *rc::gen::element(0, keep + 1, keep + 70, keep + 150);
  const auto original = make_layer(max_size, keep);
  const auto other = make_layer(max_size, keep);
  update(*other, 7);
  const auto steps = *rc::gen::container<std::vector<int>>(3, rc::gen::inRange(0, 120));
  for (const int count : steps) {
    if (count > 0) {
      update(*original, count);
    }
    restore(*other, serialize(*original));
    RC_ASSERT(other->offset() == original->offset());
    RC_ASSERT(other->view().has_value() == original->view().has_value());
    if (other->view()) {
      RC_ASSERT(mx::array_equal(other->view()->keys, original->view()->keys).item<bool>());
      const auto copy = original->copy();
      const auto a = update(*copy, 3);
      const auto b = update(*other, 3);
      RC_ASSERT(mx::array_equal(a.keys, b.keys).item<bool>());
      RC_ASSERT(mx::array_equal(a.values, b.values).item<bool>());
    }
  }
}

TEST(SerializedRows, RingsAreUnrolled) {
  WindowCache cache(test_shape(), 8, 4);
  // R1: 12 rows one at a time.
  restore(cache, ring({0, 1, 2, 3, 8, 9, 10, 11}, {"4", "8", "12", "8"}));
  EXPECT_TRUE(same_rows(*cache.view(), {0, 1, 2, 3, 8, 9, 10, 11}));
  restore(cache, ring({0, 1, 2, 3, 8, 9, 6, 7}, {"4", "8", "10", "6"}));
  EXPECT_TRUE(same_rows(*cache.view(), {0, 1, 2, 3, 6, 7, 8, 9}));
  EXPECT_TRUE(same_rows(update(cache, 1), {0, 1, 2, 3, 7, 8, 9, 10}));
  // R4: more rows than max_size.
  restore(cache, ring({0, 1, 2, 3, 6, 7, 8, 9, 10}, {"4", "8", "11", "9"}));
  EXPECT_TRUE(same_rows(*cache.view(), {0, 1, 2, 3, 7, 8, 9, 10}));
  EXPECT_EQ(cache.offset(), 11);
  // R5: not full yet.
  restore(cache, ring({0, 1, 2}, {"4", "8", "3", "3"}));
  EXPECT_TRUE(same_rows(*cache.view(), {0, 1, 2}));
  restore(cache, {"RotatingKVCache", {}, {"4", "8", "0", "0"}});
  EXPECT_TRUE(cache.is_empty());
}

TEST(SerializedRows, FailuresChangeNothing) {
  WindowCache cache(test_shape(), 8, 4);
  update(cache, 30);
  const auto refuse = [&](ErrorCode code, SerializedCache bad) {
    testing::expect_error(code, {}, [&] { restore(cache, bad); });
    EXPECT_EQ(cache.offset(), 30);
    EXPECT_TRUE(same_rows(*cache.view(), {0, 1, 2, 3, 26, 27, 28, 29}));
  };
  const auto rows = ring({0, 1, 2}, {"4", "8", "3", "3"});
  refuse(ErrorCode::kInvalidArgument, ring({0, 1, 2}, {"4", "9", "3", "3"}));
  refuse(ErrorCode::kInvalidArgument, ring({0, 1, 2}, {"0", "8", "3", "3"}));
  refuse(ErrorCode::kInvalidArgument, {"KVCache", rows.state, {}});
  refuse(
      ErrorCode::kInvalidArgument, {"RotatingKVCache", {rows.state[1], rows.state[0]}, rows.meta}
  );
  refuse(ErrorCode::kInvalidArgument, {"ChunkedKVCache", rows.state, {"8", "0"}});
  refuse(ErrorCode::kCorruptData, ring({0, 1, 2}, {"4", "8", "2", "2"}));
  refuse(ErrorCode::kCorruptData, ring({0, 1, 2}, {"4", "8", "x", "3"}));
  refuse(ErrorCode::kCorruptData, {"RotatingKVCache", {rows.state[0]}, rows.meta});
}

TEST(SerializedRows, AFullCacheServesASlidingLayer) {
  WindowCache cache(test_shape(), 4);
  const auto rows = numbered_rows(numbers(0, 10));
  restore(cache, {"KVCache", {to_tensor(rows.keys), to_tensor(rows.values)}, {}});
  EXPECT_TRUE(same_rows(*cache.view(), {6, 7, 8, 9}));
  EXPECT_EQ(cache.offset(), 10);
}

TEST(SerializedRows, OtherFloatsAreConverted) {
  KVCache cache({kHeads, kDim, kValueDim, mx::bfloat16});
  auto rows = numbered_rows({1, 2, 3});
  rows.keys = mx::astype(rows.keys, mx::float16);
  restore(cache, {"KVCache", {to_tensor(rows.keys), to_tensor(rows.values)}, {}});
  EXPECT_EQ(cache.view()->keys.dtype(), mx::bfloat16);
  EXPECT_TRUE(mx::array_equal(cache.view()->keys, rows.keys).item<bool>());
}

// What a quantized layer holds, as mx::quantize makes it.
SerializedCache codes(const std::string& kind, const std::vector<int>& rows, Texts meta) {
  const auto wide = [&](float sign) {
    auto numbers =
        mx::reshape(numbered(rows, 1, sign), {1, kHeads, static_cast<int>(rows.size()), 1});
    return mx::multiply(numbers, mx::arange(1.0F, 33.0F, 1.0F));  // [1, H, n, 32]
  };
  SerializedCache serialized{kind, {}, std::move(meta)};
  for (const float sign : {1.0F, -1.0F}) {
    for (const mx::array& part : mx::quantize(wide(sign), 32, 4)) {
      serialized.state.push_back(to_tensor(part));
    }
  }
  return serialized;
}

std::vector<std::byte> bytes_of(const SerializedCache& serialized) {
  std::vector<std::byte> bytes;
  for (const Tensor& part : serialized.state) {
    bytes.insert(bytes.end(), part.data.get(), part.data.get() + part.nbytes());
  }
  return bytes;
}

TEST(SerializedRows, CodesStayAsTheyAre) {
  const kernels::KvShape shape{kHeads, 32, 32, mx::float32, 4};
  KVCache full(shape);
  const auto rows = codes("QuantizedKVCache", numbers(0, 70), {"70", "32", "4"});
  restore(full, rows);
  EXPECT_EQ(full.offset(), 70);
  auto again = serialize(full);
  EXPECT_EQ(again.kind, rows.kind);
  EXPECT_EQ(again.meta, rows.meta);
  EXPECT_EQ(bytes_of(again), bytes_of(rows));
  // A wrapped ring, the oldest of its newest rows at index 6.
  WindowCache ring(shape, 8, 4);
  restore(
      ring,
      codes("QuantizedRotatingKVCache", {0, 1, 2, 3, 8, 9, 6, 7}, {"4", "8", "10", "6", "32", "4"})
  );
  again = serialize(ring);
  EXPECT_EQ(again.meta, (Texts{"4", "8", "10", "8", "32", "4"}));
  EXPECT_EQ(bytes_of(again), bytes_of(codes("", {0, 1, 2, 3, 6, 7, 8, 9}, {})));
  // A full cache's codes serve a sliding layer.
  WindowCache sliding(shape, 8);
  restore(sliding, rows);
  EXPECT_EQ(bytes_of(serialize(sliding)), bytes_of(codes("", numbers(62, 8), {})));
  restore(sliding, {"QuantizedKVCache", {}, {"0", "32", "4"}});
  EXPECT_TRUE(sliding.is_empty());
}

TEST(SerializedRows, CodesWithoutBiasesHaveBiasesOfZero) {
  auto rows = codes("QuantizedKVCache", numbers(0, 7), {"7", "32", "4"});
  for (const std::size_t biases : {2U, 5U}) {
    rows.state[biases] = to_tensor(mx::zeros_like(to_array(rows.state[biases])));
  }
  auto without = rows;
  without.state = {rows.state[0], rows.state[1], rows.state[3], rows.state[4]};
  KVCache cache({kHeads, 32, 32, mx::float32, 4});
  restore(cache, without);
  // What the first page keeps as it is may have other codes of the same numbers.
  const auto keys = [](const SerializedCache& of) {
    return mx::dequantize(
        to_array(of.state[0]), to_array(of.state[1]), to_array(of.state[2]), 32, 4
    );
  };
  EXPECT_TRUE(mx::allclose(keys(serialize(cache)), keys(rows), 1e-5, 1e-5).item<bool>());
  // Bytes as scales are another kind of codes.
  const auto floats = mx::ones({1, kHeads, 7, 32});
  const auto parts = mx::quantize(floats, 32, 4, "mxfp4");
  for (const std::size_t half : {0U, 2U}) {
    without.state[half] = to_tensor(parts[0]);
    without.state[half + 1] = to_tensor(parts[1]);
  }
  testing::expect_error(ErrorCode::kInvalidArgument, {"bytes as scales"}, [&] {
    restore(cache, without);
  });
}

TEST(SerializedRows, CodesOfAnotherFormAreRefused) {
  KVCache cache({kHeads, 32, 32, mx::float32, 4});
  const auto rows = codes("QuantizedKVCache", numbers(0, 7), {"7", "32", "4"});
  restore(cache, rows);
  const auto before = bytes_of(serialize(cache));
  using Words = std::vector<std::string_view>;
  const auto refuse = [&](ErrorCode code, const Words& says, const SerializedCache& bad) {
    testing::expect_error(code, says, [&] { restore(cache, bad); });
    EXPECT_EQ(bytes_of(serialize(cache)), before);
  };
  auto bad = rows;
  bad.meta = {"7", "32", "8"};
  refuse(ErrorCode::kCorruptData, {"words of 8 bits"}, bad);
  bad.meta = {"6", "32", "4"};
  refuse(ErrorCode::kCorruptData, {"offset is 6 with 7 rows"}, bad);
  bad.meta = {"7", "nan", "4"};
  refuse(ErrorCode::kCorruptData, {"group_size"}, bad);
  bad = {"QuantizedKVCache", {}, {"0", "64", "4"}};
  refuse(ErrorCode::kInvalidArgument, {"groups of 64, expected", "groups of 32"}, bad);
  bad = codes("QuantizedRotatingKVCache", numbers(0, 7), {"0", "8", "7", "7", "32", "4"});
  refuse(ErrorCode::kInvalidArgument, {"expected a QuantizedKVCache"}, bad);
  bad.meta[3] = "5";
  refuse(ErrorCode::kCorruptData, {"idx is 5"}, bad);
  KVCache plain({kHeads, 32, 32, mx::float32});
  testing::expect_error(
      ErrorCode::kInvalidArgument,
      {"4 bits in groups of 32, expected rows of 16 bits"},
      [&] { restore(plain, rows); }
  );
  KVCache narrow({kHeads, 64, 32, mx::float32, 4});
  testing::expect_error(ErrorCode::kUnsupported, {"64 and 32"}, [&] { restore(narrow, rows); });
  KVCache one_head({1, 32, 32, mx::float32, 4});
  testing::expect_error(ErrorCode::kInvalidArgument, {"shape"}, [&] { restore(one_head, rows); });
}

TEST(SerializedRows, LayersGoTogether) {
  const auto make = [] {
    std::vector<std::unique_ptr<LayerCache>> layers;
    layers.push_back(make_layer(0, 0));
    layers.push_back(make_layer(4, 0));
    return SequenceCache(std::move(layers));
  };
  auto cache = make();
  update(cache.layer(0), 9);
  update(cache.layer(1), 9);
  auto layers = serialize(cache);
  EXPECT_EQ(restored(make(), layers).offset(), 9);
  EXPECT_EQ(layers[1].meta, (Texts{"0", "4", "9", "4"}));
  layers[1].meta[2] = "8";
  testing::expect_error(ErrorCode::kInvalidArgument, {"layer 1 is at offset 8"}, [&] {
    restored(make(), layers);
  });
  layers.pop_back();
  testing::expect_error(ErrorCode::kInvalidArgument, {"1 layers, expected 2"}, [&] {
    restored(make(), layers);
  });
}

}  // namespace
}  // namespace saker::cache
