// SPDX-License-Identifier: Apache-2.0
#include "saker/server/kv_events/block_watch.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace saker::server::kv_events {
namespace {

using Ids = std::vector<std::int32_t>;
using What = BlockChange::What;

Ids numbered(int count, int from = 0) {
  Ids ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), from);
  return ids;
}

struct Heard {
  std::vector<BlockChange> changes;

  BlockWatch::Report report() {
    return [this](BlockChange change) { changes.push_back(std::move(change)); };
  }

  BlockChange take() {
    EXPECT_EQ(changes.size(), 1U);
    BlockChange change = changes.back();
    changes.clear();
    return change;
  }
};

const std::string kKey = "max_kv_size=0 kv_bits=0 adapter=";

TEST(BlockWatch, TellsWholeBlocksOnce) {
  Heard heard;
  BlockWatch watch(heard.report());
  watch.rows(kKey, numbered(63), 63);
  EXPECT_TRUE(heard.changes.empty());
  watch.rows(kKey, numbered(150), 150);
  const BlockChange first = heard.take();
  EXPECT_EQ(first.what, What::kStored);
  ASSERT_EQ(first.hashes.size(), 2U);
  EXPECT_FALSE(first.parent);
  EXPECT_EQ(first.tokens, numbered(128));
  watch.rows(kKey, numbered(150), 150);
  EXPECT_TRUE(heard.changes.empty());
  watch.rows(kKey, numbered(200), 200);
  const BlockChange second = heard.take();
  EXPECT_EQ(second.parent, first.hashes[1]);
  EXPECT_EQ(second.tokens, numbered(64, 128));
}

TEST(BlockWatch, RemovedBlocksCanComeBack) {
  Heard heard;
  BlockWatch watch(heard.report());
  watch.rows(kKey, numbered(192), 192);
  const auto hashes = heard.take().hashes;
  watch.rows(kKey, numbered(192), 100);  // In the second block.
  const BlockChange removed = heard.take();
  EXPECT_EQ(removed.what, What::kRemoved);
  EXPECT_EQ(removed.hashes, (std::vector<std::uint64_t>{hashes[1], hashes[2]}));
  watch.rows(kKey, numbered(192), 100);
  EXPECT_TRUE(heard.changes.empty());
  watch.rows(kKey, numbered(192), 192);
  EXPECT_EQ(heard.take().hashes, removed.hashes);
  watch.rows("", {}, 0);
  EXPECT_EQ(heard.take().what, What::kCleared);
  watch.rows(kKey, numbered(64), 64);
  EXPECT_EQ(heard.take().hashes.front(), hashes.front());
}

TEST(BlockWatch, HashesDependOnKeyAndAllTokensBefore) {
  Heard heard;
  BlockWatch watch(heard.report());
  Ids other = numbered(128);
  other.front() = 5;
  watch.rows(kKey, numbered(128), 128);
  watch.rows("kv_bits=8 adapter=", numbered(128), 128);
  watch.rows(kKey, other, 128);
  std::set<std::uint64_t> all;
  for (const BlockChange& change : heard.changes) {
    all.insert(change.hashes.begin(), change.hashes.end());
  }
  EXPECT_EQ(all.size(), 6U);
}

TEST(BlockWatch, RowsOfAdaptersAndSaltsAreNotTold) {
  Heard heard;
  BlockWatch watch(heard.report());
  watch.rows("kv_bits=0 adapter=a:3f800000", numbered(128), 128);
  watch.rows("kv_bits=0 adapter= salt=\"x adapter=\"", numbered(128), 128);
  EXPECT_TRUE(heard.changes.empty());
}

}  // namespace
}  // namespace saker::server::kv_events
