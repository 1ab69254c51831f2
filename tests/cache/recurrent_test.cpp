// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/recurrent.h"

#include "saker/base/error.h"
#include "saker/cache/sequence_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace saker::cache {
namespace {

// After n rows the arrays are filled with n and 10 n.
RecurrentState state_after(std::int64_t rows) {
  const auto number = static_cast<float>(rows);
  return {mx::full({2, 3}, number), mx::full({2, 3, 4}, 10 * number)};
}

void write(RecurrentCache& cache, int rows, bool replays = true) {
  const std::int64_t before = cache.offset();
  RecurrentCache::Replay replay;
  if (replays) {
    replay = [before](int count) { return state_after(before + count); };
  }
  cache.advance(rows, state_after(before + rows), std::move(replay));
}

// The rows that the state is after; -1: parts of different states.
std::int64_t rows_of(const RecurrentCache& cache) {
  const auto& state = cache.state();
  const auto rows = static_cast<std::int64_t>(mx::max(state[0]).item<float>());
  const auto is = [](const mx::array& array, std::int64_t value) {
    return mx::all(mx::equal(array, mx::array(static_cast<float>(value)))).item<bool>();
  };
  return is(state[0], rows) && is(state[1], 10 * rows) && rows == cache.offset() ? rows : -1;
}

TEST(RecurrentCache, KeepsAnyPartOfATransactionThatCanBeReplayed) {
  for (int kept = 0; kept <= 9; ++kept) {
    RecurrentCache cache(state_after(0));
    write(cache, 5);
    cache.begin();
    write(cache, 4);
    write(cache, 1);
    write(cache, 4);
    EXPECT_EQ(rows_of(cache), 14);
    EXPECT_TRUE(cache.can_commit(kept));
    cache.commit(kept);
    EXPECT_EQ(rows_of(cache), 5 + kept);
    cache.begin();
    write(cache, 3);
    cache.roll_back();
    EXPECT_EQ(rows_of(cache), 5 + kept);
  }
}

TEST(RecurrentCache, WithoutAReplayRowsAreKeptAsAWhole) {
  RecurrentCache cache(state_after(0));
  cache.begin();
  write(cache, 100, false);
  write(cache, 2);
  EXPECT_FALSE(cache.can_commit(1));
  EXPECT_FALSE(cache.can_commit(99));
  EXPECT_FALSE(cache.can_commit(103));
  EXPECT_THROW(cache.commit(99), Error);
  EXPECT_TRUE(cache.can_commit(101));
  cache.commit(100);
  EXPECT_EQ(rows_of(cache), 100);
}

TEST(RecurrentCache, SnapshotsFromBelowZeroBeginAtZero) {
  RecurrentCache cache(state_after(0));
  EXPECT_EQ(cache.snapshot(-1), nullptr);
  write(cache, 4);
  const auto rows = cache.snapshot(-7);
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->first(), 0);
  EXPECT_EQ(rows->last(), 4);
}

TEST(RecurrentCache, CommitsAtMostWhatWasWritten) {
  RecurrentCache cache(state_after(0));
  cache.begin();
  write(cache, 4);
  cache.commit(99);
  EXPECT_EQ(rows_of(cache), 4);
  cache.begin();
  write(cache, 4);
  EXPECT_THROW(cache.clear(), Error);
  cache.commit(-1);
  EXPECT_EQ(rows_of(cache), 4);
  cache.clear();
  EXPECT_TRUE(cache.is_empty());
  EXPECT_EQ(rows_of(cache), 0);
}

// All layers keep the rows, or none.
TEST(RecurrentCache, ASequenceAsksFirst) {
  std::vector<std::unique_ptr<LayerCache>> layers;
  layers.push_back(std::make_unique<RecurrentCache>(state_after(0)));
  layers.push_back(std::make_unique<RecurrentCache>(state_after(0)));
  SequenceCache sequence(std::move(layers));
  auto& first = dynamic_cast<RecurrentCache&>(sequence.layer(0));
  auto& second = dynamic_cast<RecurrentCache&>(sequence.layer(1));
  sequence.begin();
  write(first, 8);
  write(second, 8, false);
  EXPECT_THROW(sequence.commit(3), Error);
  EXPECT_EQ(rows_of(first), 8);
  sequence.commit(8);
  EXPECT_EQ(rows_of(first), 8);
  EXPECT_EQ(rows_of(second), 8);
  EXPECT_FALSE(sequence.restores_anywhere());
}

TEST(RecurrentCache, TrimsAllOrNothing) {
  RecurrentCache cache(state_after(0));
  write(cache, 6);
  EXPECT_FALSE(cache.can_trim(1));
  EXPECT_EQ(cache.trim(1), 0);
  EXPECT_EQ(rows_of(cache), 6);
  EXPECT_EQ(cache.trim(6), 6);
  EXPECT_EQ(rows_of(cache), 0);
}

TEST(RecurrentCache, ACopyIsItsOwn) {
  RecurrentCache cache(state_after(0));
  write(cache, 6);
  const auto copy = cache.copy();
  write(cache, 1);
  EXPECT_EQ(rows_of(dynamic_cast<const RecurrentCache&>(*copy)), 6);
  EXPECT_EQ(rows_of(cache), 7);
}

TEST(RecurrentCache, HasNoRowsToAttendTo) {
  RecurrentCache cache(state_after(0));
  EXPECT_THROW(cache.append(0, 1), Error);
  EXPECT_THROW(cache.update(mx::zeros({1, 1, 1, 1}), mx::zeros({1, 1, 1, 1})), Error);
  EXPECT_THROW(cache.advance(1, {mx::zeros({2, 3})}, nullptr), Error);
  EXPECT_THROW(cache.assign_state(1, {mx::zeros({2, 3}), mx::zeros({2, 4, 3})}), Error);
  EXPECT_EQ(rows_of(cache), 0);
}

// Snapshots after 10, 30 and 40 rows, joined.
LayerSnapshotPtr some_states(RecurrentCache& cache) {
  write(cache, 10);
  auto rows = cache.snapshot(0);
  for (const int count : {20, 10}) {
    const std::int64_t from = cache.offset();
    write(cache, count);
    rows = rows->joined(*cache.snapshot(from));
  }
  return rows;
}

TEST(RecurrentSnapshot, ReachesTheStatesThatItHas) {
  RecurrentCache cache(state_after(0));
  const auto rows = some_states(cache);
  for (const auto& [target, reached] :
       {std::pair(9, -1), {10, 10}, {29, 10}, {30, 30}, {39, 30}, {40, 40}, {99, 40}}) {
    RecurrentCache other(state_after(0));
    EXPECT_EQ(other.reach(*rows, target), reached) << target;
    EXPECT_EQ(other.restore(rows.get(), target), target == reached) << target;
    EXPECT_EQ(rows_of(other), target == reached ? target : 0) << target;
  }
  EXPECT_FALSE(cache.restore(nullptr, 30));
  EXPECT_TRUE(cache.restore(nullptr, 40));
  EXPECT_TRUE(cache.restore(nullptr, 0));
  EXPECT_EQ(rows_of(cache), 0);
  EXPECT_EQ(cache.snapshot(0), nullptr);
}

TEST(RecurrentSnapshot, SlicesKeepTheirStates) {
  RecurrentCache cache(state_after(0));
  const auto rows = some_states(cache);
  EXPECT_EQ(cache.reach(*rows->slice(0, 29), 99), 10);
  EXPECT_EQ(cache.reach(*rows->slice(10, 29), 99), -1);
  EXPECT_EQ(cache.reach(*rows->slice(10, 30), 99), 30);
  EXPECT_EQ(cache.reach(*rows->slice(10, 20)->joined(*rows->slice(20, 40)), 39), 30);
}

// An open transaction is not part of it.
TEST(RecurrentSnapshot, IsOfWhatIsCommitted) {
  RecurrentCache cache(state_after(0));
  write(cache, 3);
  cache.begin();
  write(cache, 2);
  const auto rows = cache.snapshot(0);
  EXPECT_EQ(rows->last(), 3);
  RecurrentCache other(state_after(0));
  EXPECT_TRUE(other.restore(rows.get(), 3));
  EXPECT_EQ(rows_of(other), 3);
}

TEST(RecurrentSnapshot, BlocksThatDoNotFitAreRefused) {
  const RecurrentCache cache(state_after(0));
  const auto from = [&](std::vector<BlockSource::Block> blocks) {
    return cache.snapshot_of({std::move(blocks), [](auto) {}}, 10, 20);
  };
  const std::size_t first = sizeof(float) * 2 * 3;
  EXPECT_NE(from({{2 * 15, first}, {2 * 15 + 1, 4 * first}}), nullptr);
  EXPECT_THROW(from({{2 * 15, first}}), Error);                           // Half a state.
  EXPECT_THROW(from({{2 * 15, first}, {2 * 15, first}}), Error);          // The same half twice.
  EXPECT_THROW(from({{2 * 15, first}, {2 * 15 + 1, first}}), Error);      // Too short.
  EXPECT_THROW(from({{2 * 10, first}, {2 * 10 + 1, 4 * first}}), Error);  // Before the rows.
  EXPECT_THROW(from({{2 * 21, first}, {2 * 21 + 1, 4 * first}}), Error);
  EXPECT_THROW(from({{-1, first}}), Error);
}

}  // namespace
}  // namespace saker::cache
