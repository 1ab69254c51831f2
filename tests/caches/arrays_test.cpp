// SPDX-License-Identifier: Apache-2.0
// Cases A, L and X9 of the cache conformance list.
#include "saker/caches/arrays.h"

#include "saker/base/error.h"
#include "saker/caches/cache_list.h"
#include "saker/caches/kv.h"
#include "saker/caches/rotating.h"

#include "tests/caches/token_rows.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace saker::caches {
namespace {

using testing::expect_error;

mx::array column(const Ids& ids) {
  return mx::reshape(mx::astype(token_rows(ids), mx::float32), {static_cast<int>(ids.size()), 1});
}

std::vector<float> slot(const ArraysCache& cache, std::size_t index) {
  return floats_of(*cache.get(index));
}

TEST(CachesArrays, A1Masks) {
  ArraysCache cache(2, {1, 0});
  EXPECT_EQ(bits(cache.make_mask(3)), "011/111");
  ArraysCache right(2);
  EXPECT_EQ(bits(right.make_mask(3)), "none");
  right.prepare({2, 3});
  EXPECT_EQ(bits(right.make_mask(3)), "110/111");
  right.advance(1);
  EXPECT_EQ(bits(right.make_mask(2)), "10/11");
  right.finalize();
  EXPECT_EQ(bits(right.make_mask(2)), "none");
}

TEST(CachesArrays, A2SlotsKeepTheirPlace) {
  ArraysCache cache(3);
  cache.set(1, column({7, 8}));
  EXPECT_EQ(cache.meta_state(), (Texts{"3", "1", "", ""}));
  EXPECT_EQ(cache.batch_size(), 2);
  const auto again = from_state("ArraysCache", cache.state(), {"3", "1"});
  const auto& restored = dynamic_cast<const ArraysCache&>(*again);
  EXPECT_FALSE(restored.get(0));
  EXPECT_EQ(slot(restored, 1), (std::vector<float>{7, 8}));
  EXPECT_FALSE(restored.get(2));
  const auto legacy = from_state("ArraysCache", cache.state(), {""});
  EXPECT_EQ(dynamic_cast<const ArraysCache&>(*legacy).slot_count(), 1U);
  expect_error(ErrorCode::kInvalidArgument, {"slot 3 of 3"}, [&] { cache.set(3, column({1})); });
  expect_error(ErrorCode::kUnsupported, {}, [&] { append(cache, {1}); });
  EXPECT_EQ(cache.offset(), 0);
  EXPECT_FALSE(cache.is_trimmable());
}

TEST(CachesArrays, A3LimitsComeFirst) {
  ArraysCache cache(1);
  cache.set(0, column({5}));
  std::string many = "0";
  for (int i = 0; i < 500000; ++i) {
    many += ",0";
  }
  expect_error(ErrorCode::kCorruptData, {"1048577"}, [&] {
    cache.from_serialized(cache.state(), {"1048577", ""});
  });
  expect_error(ErrorCode::kCorruptData, {"500001"}, [&] {
    cache.from_serialized(cache.state(), {"1", many});
  });
  EXPECT_EQ(slot(cache, 0), std::vector<float>{5});
}

TEST(CachesArrays, X9RowsComeAndGo) {
  ArraysCache cache(2);
  cache.set(0, column({1, 2, 3}));
  cache.set(1, column({4, 5, 6}));
  cache.filter(Ids{2, 0});
  EXPECT_EQ(slot(cache, 0), (std::vector<float>{3, 1}));
  ArraysCache other(2);
  other.set(0, column({9}));
  cache.extend(other);
  EXPECT_EQ(slot(cache, 0), (std::vector<float>{3, 1, 9}));
  EXPECT_EQ(slot(cache, 1), (std::vector<float>{6, 4, 0}));
  EXPECT_EQ(slot(cache.extract(2), 0), (std::vector<float>{9}));
  const std::array<const ArraysCache*, 2> both = {&other, &other};
  EXPECT_EQ(slot(ArraysCache::merge(both), 0), (std::vector<float>{9, 9}));
  const ArraysCache empty(2);
  const std::array<const ArraysCache*, 3> none = {&empty, &empty, &empty};
  EXPECT_EQ(ArraysCache::merge(none).batch_size(), 3);
}

TEST(CachesArrays, MambaKeepsItsLabel) {
  auto cache = ArraysCache::mamba();
  cache.set(0, column({1}));
  EXPECT_EQ(cache.kind(), "MambaCache");
  EXPECT_EQ(cache.reference_class_name(), "ArraysCache");
  EXPECT_EQ(cache.copy()->kind(), "MambaCache");
  EXPECT_EQ(from_state(cache.kind(), cache.state(), cache.meta_state())->kind(), "MambaCache");
}

CacheList full_and_ring() {
  std::vector<std::shared_ptr<Cache>> children;
  children.push_back(std::make_unique<KVCache>());
  children.push_back(std::make_unique<RotatingKVCache>(8, 4));
  append(*children[0], numbers(0, 3));
  append(*children[1], numbers(0, 5));
  return CacheList(std::move(children));
}

TEST(CachesList, L1ForwardsToItsChildren) {
  auto list = full_and_ring();
  EXPECT_EQ(
      list.meta_state(),
      (Texts{"2", "KVCache", "2", "0", "RotatingKVCache", "2", "4", "4", "8", "5", "5"})
  );
  EXPECT_EQ(list.offset(), 5);
  EXPECT_EQ(list.state().size(), 4U);
  const auto again = from_state("CacheList", list.state(), list.meta_state());
  EXPECT_EQ(again->meta_state(), list.meta_state());
  EXPECT_EQ(list.trim(2), 2);
  EXPECT_EQ(list[0].offset(), 1);
  append(list[1], numbers(3, 9));
  EXPECT_FALSE(list.is_trimmable());
  EXPECT_EQ(list.trim(1), 0);
  EXPECT_EQ(list[0].offset(), 1);
  expect_error(ErrorCode::kUnsupported, {}, [&] { append(list, {1}); });
  expect_error(ErrorCode::kUnsupported, {}, [&] { list.make_mask(1); });
  EXPECT_TRUE(CacheList({}).is_empty());
  EXPECT_TRUE(CacheList({}).is_trimmable());
}

TEST(CachesList, L2FailuresChangeNothing) {
  auto list = full_and_ring();
  const auto before = list.meta_state();
  const std::vector<Texts> bad = {
      {"18446744073709551615"},
      {"2147483647", "KVCache", "2", "0"},
      {"1", "KVCache", "2"},
      {"1", "KVCache", "2", "0"},
      {"2", "KVCache", "2", "0", "RotatingKVCache", "2", "4", "4", "8", "2", "5"},
      {},
  };
  for (const Texts& meta : bad) {
    expect_error(ErrorCode::kCorruptData, {}, [&] { list.from_serialized(list.state(), meta); });
    EXPECT_EQ(list.meta_state(), before);
  }
  auto state = list.state();
  state[3] = token_rows(Ids{1});
  expect_error(ErrorCode::kCorruptData, {}, [&] { list.set_state(state); });
  state.pop_back();
  expect_error(ErrorCode::kCorruptData, {}, [&] { list.set_state(state); });
  EXPECT_EQ(ids_of(list.state()[0]), numbers(0, 3));
}

}  // namespace
}  // namespace saker::caches
