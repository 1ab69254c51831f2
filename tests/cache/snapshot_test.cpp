// SPDX-License-Identifier: Apache-2.0
// Cases K, C and R follow the cache tests of ollama's MLX runner; the numbers are ours. What differs
// says so.
#include "saker/cache/snapshot.h"

#include "saker/base/error.h"
#include "saker/cache/kv.h"
#include "saker/cache/row_snapshot.h"
#include "saker/cache/speculation.h"
#include "saker/cache/window.h"

#include "tests/cache/rows.h"
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace saker::cache {
namespace {

// Bytes of the memory that these hold together.
template <typename... Holders>
std::size_t bytes_of(const Holders&... holders) {
  SharedBytes total;
  const auto add = [&](const LayerSnapshotPtr& rows) {
    rows->for_each_block([&](const kernels::KvBlock& block) { total.add(block); });
  };
  (add(holders), ...);
  return total.bytes();
}

// What a cache holds, for counting.
LayerSnapshotPtr all(const LayerCache& cache) {
  return cache.snapshot(0);
}

std::unique_ptr<LayerCache> kv(int rows = 0) {
  auto cache = std::make_unique<KVCache>(test_shape());
  if (rows > 0) {
    update(*cache, rows);
  }
  return cache;
}

std::unique_ptr<LayerCache> ring(int window, int rows = 0, int keep = 0) {
  auto cache = std::make_unique<WindowCache>(test_shape(), window, keep);
  for (int i = 0; i < rows; ++i) {
    update(*cache, 1);
  }
  return cache;
}

void write(LayerCache& cache, const std::vector<int>& rows) {
  const auto content = numbered_rows(rows);
  cache.update(content.keys, content.values);
}

bool has(const LayerCache& cache, const std::vector<int>& rows) {
  return cache.view().has_value() && same_rows(*cache.view(), rows);
}

TEST(Snapshot, K1NeedsItsBase) {
  const auto cache = kv(10);
  const auto rows = cache->snapshot(5);
  const auto fresh = kv();
  EXPECT_FALSE(fresh->restore(rows.get(), 10));
  EXPECT_TRUE(fresh->is_empty());
}

TEST(Snapshot, K2FillsAFreshCache) {
  const auto rows = kv(10)->snapshot(0);
  const auto fresh = kv();
  EXPECT_TRUE(fresh->restore(rows.get(), 10));
  EXPECT_EQ(fresh->offset(), 10);
  EXPECT_TRUE(has(*fresh, numbers(0, 10)));
}

TEST(Snapshot, K3SplitRestoresInTwoSteps) {
  const auto [parent, child] = split(kv(10)->snapshot(0), 5);
  const auto fresh = kv();
  EXPECT_FALSE(fresh->restore(child.get(), 10));
  EXPECT_TRUE(fresh->restore(parent.get(), 5));
  EXPECT_TRUE(fresh->restore(child.get(), 10));
  EXPECT_TRUE(has(*fresh, numbers(0, 10)));
}

TEST(Snapshot, K4MergeUndoesASplit) {
  const auto [parent, child] = split(kv(10)->snapshot(0), 6);
  const auto fresh = kv();
  EXPECT_TRUE(fresh->restore(merge(parent, child).get(), 10));
  EXPECT_TRUE(has(*fresh, numbers(0, 10)));
}

TEST(Snapshot, K5RejectedRowsGoBackInPlace) {
  for (int accepted = 0; accepted < 4; ++accepted) {
    const auto cache = kv(6);
    update(*cache, 4);
    EXPECT_TRUE(cache->restore(nullptr, 6 + accepted));
    EXPECT_TRUE(has(*cache, numbers(0, 6 + accepted)));
  }
}

TEST(Snapshot, K6PartsOfSeveralWrites) {
  const auto cache = kv(2);
  EXPECT_EQ(cache->snapshot(2), nullptr);
  update(*cache, 2);
  const auto second = cache->snapshot(2)->slice(2, 3);
  update(*cache, 2);
  const auto third = cache->snapshot(3)->slice(3, 5);
  EXPECT_TRUE(cache->restore(nullptr, 2));
  EXPECT_TRUE(cache->restore(second.get(), 3));
  EXPECT_TRUE(cache->restore(third.get(), 5));
  EXPECT_TRUE(has(*cache, numbers(0, 5)));
}

TEST(Snapshot, K7SurvivesOverwriting) {
  const auto cache = kv(10);
  const auto rows = cache->snapshot(5);
  EXPECT_EQ(bytes_of(all(*cache), rows), bytes_of(rows));  // Costs nothing yet.
  EXPECT_TRUE(cache->restore(nullptr, 5));
  write(*cache, {100, 101, 102});
  EXPECT_TRUE(has(*cache, {0, 1, 2, 3, 4, 100, 101, 102}));
  EXPECT_EQ(bytes_of(all(*cache), rows), 2 * bytes_of(rows));  // The one page was copied.
  EXPECT_TRUE(cache->restore(rows.get(), 10));
  EXPECT_TRUE(has(*cache, numbers(0, 10)));
}

TEST(Snapshot, K8SplittingAndMergingCostNothing) {
  const auto cache = kv(500);
  const auto [parent, child] = split(cache->snapshot(2), 300);
  EXPECT_EQ(parent->last(), 300);
  EXPECT_EQ(child->first(), 300);
  const auto merged = merge(parent, child);
  EXPECT_EQ(bytes_of(all(*cache), parent, child, merged), cache->nbytes());
}

// Rows grow by pages of 64 here, not by steps of 256.
TEST(Snapshot, K9MemoryGrowsByPages) {
  const auto cache = kv(3);
  const auto page = cache->nbytes();
  update(*cache, 1);
  EXPECT_EQ(cache->nbytes(), page);
  update(*cache, 61);
  EXPECT_EQ(cache->nbytes(), 2 * page);
}

// In both layouts of rows, wherever a page's border is.
TEST(Snapshot, RowsOfEitherLayoutJoinAsTheyWereSplit) {
  const auto rows = numbered_rows(numbers(0, 200));
  const auto per_head = [](const mx::array& x) { return mx::squeeze(x, 0); };
  for (const auto layout : {kernels::KvLayout::kPaged, kernels::KvLayout::kContiguous}) {
    kernels::KvStore store(test_shape(), layout);
    store.prepare(0, 200);
    store.write(0, per_head(rows.keys), per_head(rows.values));
    const LayerSnapshotPtr whole = std::make_shared<RowSnapshot>(store.slice(0, 200), 0, 200);
    for (const int border : {1, 63, 64, 65, 130, 199}) {
      const auto [parent, child] = split(whole, border);
      const auto joined = std::dynamic_pointer_cast<const RowSnapshot>(merge(parent, child));
      ASSERT_TRUE(joined->rows().holds(0, 200)) << border;
      EXPECT_TRUE(mx::array_equal(joined->rows().keys(0, 200), store.keys(0, 200)).item<bool>());
      EXPECT_TRUE(mx::array_equal(joined->rows().values(0, 200), store.values(0, 200)).item<bool>()
      );
    }
  }
}

TEST(Snapshot, SplitsAtItsEndsAndMergesOfNothing) {
  const auto rows = kv(10)->snapshot(4);
  EXPECT_EQ(split(rows, 4), std::make_pair(LayerSnapshotPtr(), rows));
  EXPECT_EQ(split(rows, 10), std::make_pair(rows, LayerSnapshotPtr()));
  EXPECT_EQ(split(nullptr, 3).first, nullptr);
  EXPECT_EQ(merge(rows, nullptr), nullptr);
  EXPECT_EQ(merge(nullptr, rows), nullptr);
  EXPECT_THROW(merge(rows, rows), Error);
}

TEST(Snapshot, RefusalsChangeNothing) {
  const auto cache = kv(10);
  const auto rows = cache->snapshot(0);
  EXPECT_FALSE(cache->restore(nullptr, 11));
  EXPECT_FALSE(cache->restore(nullptr, -1));
  EXPECT_FALSE(cache->restore(rows.get(), 11));
  KVCache other({kHeads, kDim, kValueDim, mx::bfloat16});
  EXPECT_FALSE(other.restore(rows.get(), 10));
  EXPECT_EQ(other.reach(*rows, 10), -1);
  EXPECT_TRUE(has(*cache, numbers(0, 10)));
  cache->begin();
  EXPECT_THROW(cache->restore(nullptr, 5), Error);
}

TEST(Snapshot, OpenTransactionsAreNotInIt) {
  const auto cache = kv(10);
  cache->begin();
  update(*cache, 5);
  const auto rows = cache->snapshot(0);
  EXPECT_EQ(rows->last(), 10);
  cache->commit(5);
  EXPECT_TRUE(cache->restore(rows.get(), 10));
  EXPECT_TRUE(has(*cache, numbers(0, 10)));
}

// R4, R5, R6: short rings hold what a list would.
TEST(Snapshot, R5GoesOnAfterGoingBack) {
  const auto cache = ring(8, 8);
  EXPECT_TRUE(cache->restore(nullptr, 2));
  update(*cache, 3);
  EXPECT_TRUE(has(*cache, numbers(0, 5)));
  EXPECT_EQ(cache->offset(), 5);
}

// R10, but for the rings that have wrapped: there pages still hold rows that a ring buffer has
// overwritten, so that going back is refused later.
TEST(Snapshot, R10GoesBackInTheOwnRows) {
  for (int target = 0; target <= 4; ++target) {
    EXPECT_TRUE(ring(4, 4)->restore(nullptr, target));
    EXPECT_EQ(ring(4, 3)->restore(nullptr, target), target <= 3);
  }
  for (const int target : {9, 10}) {
    const auto cache = ring(4, 10);
    EXPECT_TRUE(cache->restore(nullptr, target));
    EXPECT_TRUE(has(*cache, numbers(target - 4, 4)));
  }
  const auto cache = ring(4, 200);
  EXPECT_FALSE(cache->restore(nullptr, -1));
  EXPECT_FALSE(cache->restore(nullptr, 100));
  EXPECT_FALSE(cache->restore(nullptr, 201));
  EXPECT_TRUE(has(*cache, numbers(196, 4)));
}

// R11: the rows of the snapshot come back, whatever was written since; some targets that are
// refused there are reached.
TEST(Snapshot, R11ComesBackAfterThreeMoreRows) {
  for (const auto& [count, target, expected] : std::vector<std::tuple<int, int, std::vector<int>>>{
           {3, 2, {0, 1}},
           {4, 3, {0, 1, 2}},
           {6, 6, {2, 3, 4, 5}},
           {6, 5, {1, 2, 3, 4}},
           {10, 10, {6, 7, 8, 9}},
       }) {
    const auto cache = ring(4, count);
    const auto rows = cache->snapshot(0);
    for (int i = 0; i < 3; ++i) {
      update(*cache, 1);
    }
    EXPECT_FALSE(cache->restore(rows.get(), count + 1));
    EXPECT_TRUE(cache->restore(rows.get(), target));
    EXPECT_TRUE(has(*cache, expected));
    EXPECT_EQ(cache->offset(), target);
  }
}

// R12: four rows are tried after ten, in a window of four; n of them stay.
TEST(Snapshot, R12KeepsAnyNumberOfTriedRows) {
  for (int accepted = 0; accepted <= 4; ++accepted) {
    const auto cache = ring(4, 10);
    cache->begin();
    const auto rows = numbered_rows(numbers(10, 4));
    EXPECT_TRUE(same_rows(cache->update(rows.keys, rows.values), numbers(7, 7)));
    cache->commit(accepted);
    EXPECT_EQ(cache->offset(), 10 + accepted);
    EXPECT_TRUE(has(*cache, numbers(6 + accepted, 4)));
  }
}

// R13: the same around the first time round.
TEST(Snapshot, R13KeepsTriedRowsAroundTheWrap) {
  for (const auto& [before, window] : {std::pair{4, 8}, {5, 4}, {3, 4}}) {
    for (int accepted = 0; accepted <= 4; ++accepted) {
      const auto cache = ring(window, before);
      cache->begin();
      update(*cache, 4);
      cache->commit(accepted);
      const int end = before + accepted;
      const int held = std::min(window, end);
      EXPECT_TRUE(has(*cache, numbers(end - held, held)));
    }
  }
}

// R14: a snapshot after each of four tried rows, then back to one of them.
TEST(Snapshot, R14GoesBackToAnyTriedRow) {
  for (const auto& [window, before] : {std::pair{32, 4}, {8, 4}, {4, 10}}) {
    for (int accepted = 0; accepted <= 4; ++accepted) {
      const auto cache = ring(window, before);
      update(*cache, 4);
      EXPECT_TRUE(cache->restore(nullptr, before + accepted));
      const int end = before + accepted;
      const int held = std::min(window, end);
      EXPECT_TRUE(has(*cache, numbers(end - held, held)));
    }
  }
}

// R15: positions inside of two long writes.
TEST(Snapshot, R15ReachesPositionsInsideOfWrites) {
  const auto cache = ring(6);
  update(*cache, 8);
  const auto first = cache->snapshot(0);
  update(*cache, 8);
  const auto rows = merge(first, cache->snapshot(8));
  const auto fresh = ring(6);
  EXPECT_TRUE(fresh->restore(rows.get(), 4));
  EXPECT_TRUE(has(*fresh, numbers(0, 4)));
  EXPECT_TRUE(fresh->restore(rows.get(), 12));
  EXPECT_TRUE(has(*fresh, numbers(6, 6)));
}

TEST(Snapshot, RingsReachWhereTheirWindowIsHeld) {
  const auto cache = ring(100, 1000);
  const auto rows = cache->snapshot(0);
  const auto fresh = ring(100);
  EXPECT_EQ(fresh->reach(*rows, 1000), 1000);
  EXPECT_EQ(fresh->reach(*rows, 997), 997);
  EXPECT_EQ(fresh->reach(*rows, 900), 0);
  EXPECT_FALSE(fresh->restore(rows.get(), 900));
  EXPECT_TRUE(fresh->restore(rows.get(), 1000));
  EXPECT_TRUE(has(*fresh, numbers(900, 100)));
}

SequenceCache two_layers(int rows) {
  std::vector<std::unique_ptr<LayerCache>> layers;
  layers.push_back(kv(rows));
  layers.push_back(ring(4, rows));
  return SequenceCache(std::move(layers));
}

bool both_have(const SequenceCache& cache, int count) {
  return cache.offset() == count && has(cache.layer(0), numbers(0, count)) &&
         has(cache.layer(1), numbers(count - 4, 4));
}

TEST(SequenceSnapshot, AllLayersOrNone) {
  auto cache = two_layers(200);
  const auto rows = *cache.snapshot(0);
  EXPECT_EQ(cache.reach(rows, 100), 0);
  auto fresh = two_layers(0);
  EXPECT_FALSE(fresh.restore(rows, 100));
  EXPECT_EQ(fresh.offset(), 0);
  EXPECT_TRUE(fresh.layer(0).is_empty());
  EXPECT_TRUE(fresh.restore(rows, 200));
  EXPECT_TRUE(both_have(fresh, 200));
  EXPECT_FALSE(two_layers(0).snapshot(0).has_value());
}

TEST(Speculation, LeavesTheCacheAloneUntilCommitted) {
  for (int accepted = 0; accepted <= 90; accepted += 15) {
    auto cache = two_layers(100);
    const auto before = bytes_of(all(cache.layer(0)), all(cache.layer(1)));
    Speculation tried(cache);
    for (int i = 0; i < 2; ++i) {
      update(tried.view().layer(i), 90);
    }
    EXPECT_EQ(tried.rows(), 90);
    EXPECT_TRUE(both_have(cache, 100));
    EXPECT_EQ(bytes_of(all(cache.layer(0)), all(cache.layer(1))), before);
    tried.commit(accepted);
    EXPECT_TRUE(both_have(cache, 100 + accepted));
    EXPECT_THROW(tried.commit(0), Error);
  }
}

TEST(Speculation, CommitsAtMostWhatWasTried) {
  for (const auto& [count, kept] : {std::pair{91, 90}, std::pair{1000, 90}, std::pair{-3, 0}}) {
    auto cache = two_layers(100);
    Speculation tried(cache);
    for (int i = 0; i < 2; ++i) {
      update(tried.view().layer(i), 90);
    }
    tried.commit(count);
    EXPECT_TRUE(both_have(cache, 100 + kept));
  }
}

TEST(Speculation, RefusesACacheThatMoved) {
  auto cache = two_layers(10);
  Speculation tried(cache);
  update(cache.layer(0), 1);
  update(cache.layer(1), 1);
  EXPECT_THROW(tried.commit(0), Error);
  EXPECT_TRUE(both_have(cache, 11));
}

}  // namespace
}  // namespace saker::cache
