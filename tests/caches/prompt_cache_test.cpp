// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/prompt_cache.h"

#include "saker/base/error.h"
#include "saker/caches/arrays.h"
#include "saker/caches/batch.h"
#include "saker/caches/batch_rotating.h"
#include "saker/caches/cache_list.h"
#include "saker/caches/kv.h"
#include "saker/caches/quantized.h"
#include "saker/caches/rotating.h"

#include "tests/caches/token_rows.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace saker::caches {
namespace {

using testing::expect_error;
using testing::TemporaryDir;

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/caches" / name;
}

// Rows [1, 2, count, 32] of bf16 whose elements all differ.
mx::array bf16_rows(int first, int count) {
  const auto all = mx::arange(64.0 * first, 64.0 * (first + count), mx::float32);
  return mx::astype(mx::reshape(mx::sin(all), {1, 2, count, 32}), mx::bfloat16);
}

void append_bf16(Cache& cache, int first, int count) {
  const auto rows = bf16_rows(first, count);
  cache.update(rows, mx::negative(rows));
}

void expect_same(const Cache& cache, const Cache& expected) {
  EXPECT_EQ(cache.kind(), expected.kind());
  EXPECT_EQ(cache.meta_state(), expected.meta_state());
  EXPECT_EQ(cache.offset(), expected.offset());
  const auto state = cache.state();
  const auto other = expected.state();
  ASSERT_EQ(state.size(), other.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    EXPECT_EQ(state[i].dtype(), other[i].dtype());
    EXPECT_TRUE(mx::array_equal(state[i], other[i]).item<bool>()) << "array " << i;
  }
}

// A cache of each class, with rows.
PromptCache every_class() {
  PromptCache caches = {
      std::make_shared<KVCache>(),
      std::make_shared<RotatingKVCache>(4, 1),
      std::make_shared<ChunkedKVCache>(4),
      std::make_shared<QuantizedKVCache>(Quantization{.group_size = 32, .bits = 4}),
      std::make_shared<QuantizedRotatingKVCache>(4, 1, Quantization{.group_size = 32, .bits = 8}),
      std::make_shared<BatchKVCache>(std::vector<int>{1, 0}),
      std::make_shared<BatchRotatingKVCache>(4, std::vector<int>{0, 2}),
  };
  for (const auto& cache : caches) {
    append_bf16(*cache, 0, 3);
    append_bf16(*cache, 3, 1);
    append_bf16(*cache, 4, 1);
  }
  auto slots = std::make_shared<ArraysCache>(3, std::vector<int>{1, 0});
  slots->set(1, token_rows({{1, 2}, {3, 4}}));
  caches.push_back(slots);
  auto child = std::make_shared<KVCache>();
  append_bf16(*child, 7, 2);
  caches.push_back(std::make_shared<CacheList>(
      std::vector<std::shared_ptr<Cache>>{child, std::make_shared<RotatingKVCache>(8, 4)}
  ));
  caches.push_back(std::make_shared<KVCache>());
  return caches;
}

TEST(CachesPromptCache, OnePerLayer) {
  EXPECT_EQ(cache::kRotatingDefaultKeep, 4);
  const auto rings = make_prompt_cache(3, 16);
  ASSERT_EQ(rings.size(), 3U);
  EXPECT_EQ(rings[2]->meta_state(), (Texts{"4", "16", "0", "0"}));
  EXPECT_EQ(make_prompt_cache(2, {}).at(1)->kind(), "KVCache");
  EXPECT_EQ(make_prompt_cache(1, 1).at(0)->meta_state(), (Texts{"0", "1", "0", "0"}));
}

TEST(CachesPromptCache, AWindowBelowOneIsARingWithoutASizeYet) {
  for (const int window : {0, -1, INT32_MIN}) {
    const auto rings = make_prompt_cache(2, window);
    ASSERT_EQ(rings.size(), 2U);
    Cache& ring = *rings[1];
    EXPECT_EQ(ring.max_size(), 0);
    EXPECT_EQ(ring.meta_state(), (Texts{"0", "0", "0", "0"}));
    EXPECT_TRUE(ring.is_empty());
    expect_error(ErrorCode::kInvalidArgument, {"max_size is 0"}, [&] { append(ring, {1}); });
    expect_error(ErrorCode::kInvalidArgument, {"max_size is 0"}, [&] { ring.make_mask(2); });
    EXPECT_EQ(from_state(ring.kind(), ring.state(), ring.meta_state())->max_size(), 0);
    ring.from_serialized(pair_of({1, 2}), {"0", "4", "2", "2"});
    EXPECT_EQ(append(ring, {3}), numbers(1, 3));
  }
  expect_error(ErrorCode::kInvalidArgument, {"max_size is -1"}, [] { RotatingKVCache(-1); });
  expect_error(ErrorCode::kCorruptData, {}, [] {
    from_state("RotatingKVCache", pair_of({1}), {"0", "0", "1", "1"});
  });
}

TEST(CachesFromState, KnowsOtherNamesAndRefusesUnknownOnes) {
  for (const char* name : {"KVCache", "KVCacheSimple", "ConcatenateKVCache", "StandardKvCache"}) {
    const auto cache = from_state(name, pair_of({1, 2}), {});
    EXPECT_EQ(cache->kind(), "KVCache");
    EXPECT_EQ(append(*cache, {3}), numbers(1, 3));
  }
  EXPECT_EQ(
      from_state("StandardQuantizedKvCache", {}, {"0", "64", "4"})->kind(), "QuantizedKVCache"
  );
  expect_error(
      ErrorCode::kUnsupported,
      {"'kvcache'",
       "KVCache (or ConcatenateKVCache, KVCacheSimple, StandardKvCache), "
       "RotatingKVCache (or RotatingKvCache), ChunkedKVCache (or ChunkedKvCache), "
       "QuantizedKVCache (or StandardQuantizedKvCache), QuantizedRotatingKVCache, CacheList, "
       "BatchKVCache (or BatchKvCache), BatchRotatingKVCache (or BatchRotatingKvCache), "
       "ArraysCache, MambaCache"},
      [] { from_state("kvcache", {}, {}); }
  );
  expect_error(ErrorCode::kCorruptData, {}, [] { from_state("KVCache", {}, {"1"}); });
  std::vector<mx::array> arrays = pair_of({1});
  KVCache cache;
  append(cache, {7});
  cache.state_into(arrays);
  EXPECT_EQ(arrays.size(), 4U);  // Appended, nothing replaced.
}

TEST(CachesPromptCache, AFileHoldsEveryClassBitForBit) {
  const TemporaryDir dir;
  const PromptCache caches = every_class();
  save_prompt_cache(dir.path() / "all", caches, {{"model", "mine"}});
  const auto loaded = load_prompt_cache(dir.path() / "all");
  EXPECT_EQ(loaded.metadata, (Metadata{{"model", "mine"}}));
  ASSERT_EQ(loaded.caches.size(), caches.size());
  for (std::size_t i = 0; i < caches.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same(*loaded.caches[i], *caches[i]);
  }
  for (const std::size_t i : {0U, 1U, 2U, 3U, 4U, 5U, 6U}) {
    append_bf16(*loaded.caches[i], 5, 2);
    append_bf16(*caches[i], 5, 2);
    expect_same(*loaded.caches[i], *caches[i]);
  }
}

TEST(CachesPromptCache, ReadsEveryClassOfMlxLm) {
  const auto [caches, metadata] = load_prompt_cache(golden("kinds.safetensors"));
  EXPECT_EQ(metadata.at("note"), "every class");
  ASSERT_EQ(caches.size(), 12U);
  EXPECT_EQ(state_ids(*caches[0]), std::vector<Ids>{numbers(0, 5)});
  const auto row = mx::broadcast_to(token_rows(Ids{5}), {1, 2, 1, 4});  // Two heads of four.
  EXPECT_EQ(ids_of(caches[0]->update(row, row).keys), numbers(0, 6));
  auto& ring = dynamic_cast<RotatingKVCache&>(*caches[1]);
  EXPECT_EQ(ring.keep(), 4);
  EXPECT_EQ(ids_of(ring.in_time_order()->keys), (Ids{0, 1, 2, 3, 7, 8, 9, 10}));
  const auto& chunked = dynamic_cast<const ChunkedKVCache&>(*caches[4]);
  EXPECT_EQ(chunked.chunk_size(), 4);
  EXPECT_EQ(chunked.start_position(), 2);
  EXPECT_EQ(caches[5]->as_quantized()->group_size(), 32);
  EXPECT_EQ(dynamic_cast<const ArraysCache&>(*caches[6]).left_padding(), (Ids{1, 0}));
  EXPECT_EQ(caches[7]->as_batch_positioned()->batch_offset(), (Ids{3, 1, 4}));
  EXPECT_EQ(caches[9]->as_cache_list()->children().size(), 2U);
}

TEST(CachesPromptCache, AllLayersAreTrimmedOrNone) {
  PromptCache caches = make_prompt_cache(2);
  EXPECT_EQ(trim_prompt_cache({}, 3), 0);
  for (const auto& cache : caches) {
    append(*cache, {1, 2, 3});
  }
  EXPECT_TRUE(can_trim_prompt_cache(caches));
  EXPECT_EQ(trim_prompt_cache(caches, 2), 2);
  EXPECT_EQ(caches[1]->offset(), 1);
  caches.push_back(std::make_shared<ArraysCache>(2));
  EXPECT_FALSE(can_trim_prompt_cache(caches));
  EXPECT_EQ(trim_prompt_cache(caches, 1), 0);
  EXPECT_EQ(caches[0]->offset(), 1);
}

TEST(CachesPromptCache, RefusesWhatIsNoCache) {
  const TemporaryDir dir;
  expect_error(ErrorCode::kInvalidArgument, {"no caches"}, [&] {
    save_prompt_cache(dir.path() / "none", {});
  });
  expect_error(ErrorCode::kNotFound, {"none"}, [&] { load_prompt_cache(dir.path() / "none"); });
  const auto broken = dir.write("broken", "no safetensors at all");
  expect_error(ErrorCode::kCorruptData, {"broken"}, [&] { load_prompt_cache(broken); });
}

TEST(CachesPromptCache, QuantizedRowsAreThoseOfMlx) {
  KVCache plain;
  EXPECT_TRUE(plain.to_quantized({.group_size = 32, .bits = 4}).is_empty());
  append_bf16(plain, 0, 5);
  QuantizedKVCache codes = plain.to_quantized({.group_size = 32, .bits = 4});
  EXPECT_EQ(codes.meta_state(), (Texts{"5", "32", "4"}));
  const auto expected = mx::quantize(plain.state()[0], 32, 4);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(mx::array_equal(codes.state()[i], expected[i]).item<bool>());
  }
  expect_error(ErrorCode::kInvalidArgument, {"multiples of 64"}, [&] { plain.to_quantized({}); });
}

TEST(CachesPromptCache, AQuantizedRingTurnsOn) {
  for (const int count : {0, 1, 3, 9}) {
    SCOPED_TRACE(count);
    RotatingKVCache plain(4, 1);
    for (int i = 0; i < count; ++i) {
      append_bf16(plain, i, 1);
    }
    const Quantization format{.group_size = 32, .bits = 8};
    QuantizedRotatingKVCache codes = plain.to_quantized(format);
    QuantizedRotatingKVCache from_the_start(4, 1, format);
    for (int i = 0; i < count + 3; ++i) {
      append_bf16(from_the_start, i, 1);
    }
    for (int i = count; i < count + 3; ++i) {
      append_bf16(codes, i, 1);
    }
    EXPECT_EQ(codes.keep(), 1);
    expect_same(codes, from_the_start);
  }
}

}  // namespace
}  // namespace saker::caches
