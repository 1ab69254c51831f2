// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/cache.h"

#include "saker/base/error.h"
#include "saker/caches/batch.h"
#include "saker/caches/batch_rotating.h"
#include "saker/caches/cache_list.h"
#include "saker/caches/kv.h"
#include "saker/caches/mask.h"
#include "saker/caches/quantized.h"
#include "saker/caches/rotating.h"

#include "tests/caches/token_rows.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace saker::caches {
namespace {

using testing::expect_error;

CacheList list_of_two() {
  std::vector<std::shared_ptr<Cache>> children;
  children.push_back(std::make_unique<KVCache>());
  children.push_back(std::make_unique<RotatingKVCache>(8, 4));
  return CacheList(std::move(children));
}

TEST(CachesCache, SaysWhatItIsBeyondACache) {
  KVCache plain;
  QuantizedKVCache codes;
  QuantizedRotatingKVCache ring(8, 0, {});
  BatchKVCache batch({1, 0});
  BatchRotatingKVCache turning(4, {0, 2, 1});
  CacheList list = list_of_two();
  for (Cache* cache :
       std::initializer_list<Cache*>{&plain, &codes, &ring, &batch, &turning, &list}) {
    SCOPED_TRACE(cache->kind());
    const Cache& constant = *cache;
    const bool quantized = cache == &codes || cache == &ring;
    EXPECT_EQ(cache->as_quantized() != nullptr, quantized);
    EXPECT_EQ(constant.as_quantized() != nullptr, quantized);
    EXPECT_EQ(cache->as_batch_positioned() != nullptr, cache == &batch || cache == &turning);
    EXPECT_EQ(cache->as_cache_list() != nullptr, cache == &list);
    EXPECT_EQ(constant.as_cache_list() != nullptr, cache == &list);
  }
  EXPECT_EQ(codes.as_quantized()->bits(), 8);
  EXPECT_EQ(turning.as_batch_positioned()->batch_offset(), (Ids{0, -2, -1}));
  append((*list.as_cache_list())[0], {1, 2});
  EXPECT_EQ(list.offset(), 2);
}

TEST(CachesCache, RopeOffsetsAreThoseOfTheBatch) {
  BatchKVCache batch({1, 0});
  append_batch(batch, {{0, 1}, {2, 3}});
  EXPECT_EQ(floats_of(std::get<mx::array>(batch.rope_offset())), (std::vector<float>{1, 2}));
  BatchRotatingKVCache turning(4, {1});
  EXPECT_EQ(floats_of(std::get<mx::array>(turning.rope_offset())), (std::vector<float>{-1}));
  KVCache plain;
  append(plain, {1, 2, 3});
  EXPECT_EQ(std::get<std::int64_t>(plain.rope_offset()), 3);
  CacheList list = list_of_two();
  EXPECT_EQ(std::get<std::int64_t>(list.rope_offset()), 0);
}

TEST(CachesCache, StatesAreCountedAndAppended) {
  CacheList list = list_of_two();
  EXPECT_EQ(list.state_count(), 0U);
  append(list[0], numbers(0, 3));
  append(list[1], numbers(0, 5));
  EXPECT_EQ(list.state_count(), 4U);
  EXPECT_EQ(list[0].state_count(), 2U);
  Texts values{"before"};
  list[1].meta_state_into(values);
  EXPECT_EQ(values, (Texts{"before", "4", "8", "5", "5"}));
  list[0].meta_state_into(values);
  EXPECT_EQ(values.size(), 5U);
  EXPECT_EQ(
      list.meta_state(),
      (Texts{"2", "KVCache", "2", "0", "RotatingKVCache", "2", "4", "4", "8", "5", "5"})
  );
}

TEST(CachesMasks, AttentionMaskByTheUnboundedRule) {
  EXPECT_EQ(bits(create_attention_mask(1, 3)), "none");
  EXPECT_EQ(bits(create_attention_mask(3, 3)), "causal");
  EXPECT_EQ(bits(create_attention_mask(3, 3, {}, MaskForm::kArray)), "111100/111110/111111");
  EXPECT_EQ(bits(create_attention_mask(2, 3, 4)), "11110/01111");
  EXPECT_EQ(bits(create_attention_mask(1, 3, 2)), "0011");
  EXPECT_EQ(bits(create_attention_mask(2, 1, 0)), "110/111");
  EXPECT_EQ(bits(create_attention_mask(2, 1, -5)), "110/111");
}

TEST(CachesMasks, AttentionMaskRefusesWhatIsNoPlace) {
  for (const std::pair<int, std::int64_t>& place :
       {std::pair<int, std::int64_t>{0, 0}, {-1, 4}, {1, -1}, {2, INT32_MAX - 1}, {1, INT64_MAX}}) {
    expect_error(ErrorCode::kInvalidArgument, {"[mask]"}, [&] {
      create_attention_mask(place.first, place.second, 4);
    });
  }
}

}  // namespace
}  // namespace saker::caches
