// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/prefix_trie.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace saker::cache {
namespace {

using Ids = std::vector<std::int32_t>;

// Rows that are the tokens themselves, 100 bytes each, every one a block.
class TokenRows final : public LayerSnapshot {
 public:
  using Row = std::shared_ptr<const std::int32_t>;

  TokenRows(std::int64_t first, std::vector<Row> rows)
      : LayerSnapshot(first, first + static_cast<std::int64_t>(rows.size())),
        rows_(std::move(rows)) {}

  LayerSnapshotPtr slice(std::int64_t from, std::int64_t to) const override {
    return std::make_shared<TokenRows>(
        from, std::vector<Row>(rows_.begin() + (from - first()), rows_.begin() + (to - first()))
    );
  }

  LayerSnapshotPtr joined(const LayerSnapshot& next) const override {
    std::vector<Row> rows = rows_;
    const auto& more = dynamic_cast<const TokenRows&>(next).rows_;
    rows.insert(rows.end(), more.begin(), more.end());
    return std::make_shared<TokenRows>(first(), std::move(rows));
  }

  void for_each_block(const kernels::BlockVisitor& visit) const override {
    for (const Row& row : rows_) {
      visit({0, row.get(), 100});
    }
  }

  Ids tokens() const {
    Ids result;
    for (const Row& row : rows_) {
      result.push_back(*row);
    }
    return result;
  }

 private:
  std::vector<Row> rows_;
};

SequenceSnapshot rows_of(const Ids& tokens, std::int64_t first = 0) {
  std::vector<TokenRows::Row> rows;
  for (auto token = tokens.begin() + first; token != tokens.end(); ++token) {
    rows.push_back(std::make_shared<const std::int32_t>(*token));
  }
  return SequenceSnapshot({std::make_shared<TokenRows>(first, std::move(rows))});
}

Ids tokens_in(const SequenceSnapshot& rows) {
  return dynamic_cast<const TokenRows&>(*rows.layers()[0]).tokens();
}

class Trie : public ::testing::Test {
 protected:
  void insert(const Ids& tokens) { trie_.insert("k", tokens, rows_of(tokens)); }

  std::int64_t match(const Ids& tokens) const { return trie_.match("k", tokens); }

  // The tokens whose rows are found for a prompt.
  Ids found(const Ids& tokens) {
    const auto rows = trie_.find("k", tokens);
    return rows ? tokens_in(*rows) : Ids{};
  }

  std::vector<Ids> evicted_;
  PrefixTrie trie_{1000, [this](const TrieRows& gone) {
                     evicted_.push_back(gone.path);
                     EXPECT_EQ(gone.rows.last(), static_cast<std::int64_t>(gone.path.size()));
                   }};
};

TEST_F(Trie, EmptyKnowsNothing) {
  EXPECT_EQ(match({1, 2}), 0);
  EXPECT_EQ(found({1, 2}), Ids{});
  EXPECT_EQ(trie_.bytes(), 0U);
  EXPECT_EQ(trie_.node_count(), 0U);
}

// As ollama's MLX runner tests its trie; so do the next three.
TEST_F(Trie, BranchesFromTheRoot) {
  insert({1, 2, 3});
  insert({4, 5, 6});
  EXPECT_EQ(match({1, 2, 3, 7}), 3);
  EXPECT_EQ(match({7, 8, 9}), 0);
  EXPECT_EQ(match({4, 5}), 2);
  EXPECT_EQ(trie_.node_count(), 2U);
}

// What is known of a prompt, be the stored sequence shorter or longer.
TEST_F(Trie, ShorterAndLongerSequences) {
  insert({1, 2, 3, 4});
  insert({1, 2});
  EXPECT_EQ(found({1, 2}), (Ids{1, 2}));
  EXPECT_EQ(found({1, 2, 3}), (Ids{1, 2, 3}));
  EXPECT_EQ(found({1, 2, 3, 4, 5}), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(found({9}), Ids{});
  insert({1, 3});
  EXPECT_EQ(match({1}), 1);
}

// In ollama two children may start alike, here they are cut where they part.
TEST_F(Trie, LongestOfTwoEdgesThatStartAlike) {
  insert({1, 2, 3, 10, 11, 12, 13, 14});
  insert({1, 2, 3, 10, 11, 12});
  EXPECT_EQ(match({1, 2, 3, 10, 11, 12, 99}), 6);
  EXPECT_EQ(trie_.node_count(), 1U);
}

TEST_F(Trie, SplitAppendAndBranchAgain) {
  insert({1, 2, 3, 4, 5});
  insert({1, 2, 3, 6, 7});
  insert({1, 2, 3, 6, 8});
  EXPECT_EQ(match({1, 2, 3, 4, 5}), 5);
  EXPECT_EQ(match({1, 2, 3, 6, 7}), 5);
  EXPECT_EQ(match({1, 2, 3, 6, 9}), 4);
  EXPECT_EQ(found({1, 2, 3, 6, 8, 1}), (Ids{1, 2, 3, 6, 8}));
  EXPECT_EQ(trie_.node_count(), 5U);
}

// What is left of a branch becomes one edge again.
TEST_F(Trie, LoneChildrenJoinTheirParent) {
  insert({1, 2, 3, 4, 5});
  insert({1, 2, 3, 6});
  EXPECT_EQ(trie_.node_count(), 3U);
  insert({1, 2, 3, 4, 5, 7});
  insert({8, 8, 8, 8});  // 11 rows: the oldest leaf goes.
  EXPECT_EQ(evicted_, (std::vector<Ids>{{1, 2, 3, 6}}));
  EXPECT_EQ(match({1, 2, 3, 6}), 3);
  insert({8, 8, 8, 8, 9, 9});
  EXPECT_EQ(trie_.node_count(), 1U);
}

TEST_F(Trie, LongerSequencesExtendTheirLeaf) {
  insert({1, 2});
  trie_.insert("k", Ids{1, 2, 3, 4}, rows_of({1, 2, 3, 4}, 2));
  EXPECT_EQ(trie_.node_count(), 1U);
  EXPECT_EQ(found({1, 2, 3, 4}), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(trie_.bytes(), 400U);
}

TEST_F(Trie, RowsWithoutTheirBeginningAreRefused) {
  insert({1, 2});
  trie_.insert("k", Ids{1, 3, 5}, rows_of({1, 3, 5}, 2));
  trie_.insert("other", Ids{1, 2, 5}, rows_of({1, 2, 5}, 2));
  EXPECT_EQ(match({1, 3, 5}), 1);
  EXPECT_EQ(trie_.match("other", Ids{1, 2, 5}), 0);
  EXPECT_EQ(trie_.bytes(), 200U);
}

TEST_F(Trie, KeysAreApart) {
  insert({1, 2, 3});
  trie_.insert("other", Ids{1, 2}, rows_of({1, 2}));
  EXPECT_EQ(trie_.match("other", Ids{1, 2, 3}), 2);
  EXPECT_EQ(match({1, 2, 3}), 3);
  EXPECT_EQ(trie_.match("third", Ids{1}), 0);
}

TEST_F(Trie, LongestUnusedGoesFirst) {
  insert({1, 1, 1, 1});
  insert({2, 2, 2, 2});
  found({1, 1});
  insert({3, 3, 3, 3});
  EXPECT_EQ(match({1, 1, 1, 1}), 4);
  EXPECT_EQ(match({2, 2, 2, 2}), 0);
  EXPECT_EQ(trie_.bytes(), 800U);
  EXPECT_EQ(trie_.evictions(), 1);
}

TEST_F(Trie, PinnedPathsGoLast) {
  insert({1, 1, 1, 1});
  auto pin = trie_.pin("k", Ids{1, 1});
  insert({2, 2, 2, 2});
  insert({3, 3, 3, 3});
  EXPECT_EQ(match({1, 1, 1, 1}), 4);
  EXPECT_EQ(match({2, 2}), 0);
  insert({1, 1, 5});  // The pin stays below the cut.
  insert({4, 4, 4, 4, 4});
  EXPECT_EQ(match({1, 1, 1, 1}), 4);
  pin = {};
  insert({6, 6, 6, 6, 6});
  EXPECT_EQ(match({1, 1, 1, 1}), 0);
}

TEST_F(Trie, BudgetHoldsWhateverIsPinned) {
  insert({1, 1, 1, 1, 1, 1});
  const auto pin = trie_.pin("k", Ids{1, 1, 1, 1, 1, 1});
  insert({2, 2, 2, 2, 2, 2});
  EXPECT_EQ(match({1, 1, 1, 1, 1, 1}), 6);
  EXPECT_EQ(match({2}), 0);
  const auto second = trie_.pin("k", Ids{1});
  insert({1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3});
  EXPECT_LE(trie_.bytes(), 1000U);
}

TEST_F(Trie, LongEdgesLoseTheirEnd) {
  PrefixTrie trie(500'000, {});
  const Ids tokens(8000, 7);
  trie.insert("k", tokens, rows_of(tokens));
  EXPECT_LE(trie.bytes(), 500'000U);
  EXPECT_GE(trie.match("k", tokens), 3900);
}

TEST_F(Trie, DeepPathsEndWithoutDeepCalls) {
  PrefixTrie trie(SIZE_MAX, {});
  Ids tokens;
  for (int i = 0; i < 3000; ++i) {
    tokens.push_back(1);
    tokens.push_back(2);
    trie.insert("k", tokens, rows_of(tokens));
    tokens.back() = 3;
    trie.insert("k", tokens, rows_of(tokens));
    tokens.pop_back();
  }
  EXPECT_GT(trie.node_count(), 5000U);
}

// Beside a plain list of all that was inserted.
RC_GTEST_PROP(TrieProperty, FindsTheLongestCommonPrefix, ()) {
  PrefixTrie trie(SIZE_MAX, {});
  std::vector<Ids> known;
  const auto short_ids = rc::gen::container<Ids>(rc::gen::inRange(0, 3));
  for (const Ids& tokens : *rc::gen::container<std::vector<Ids>>(short_ids)) {
    std::size_t expected = 0;
    for (const Ids& other : known) {
      const auto same = std::ranges::mismatch(tokens, other);
      expected = std::max(expected, static_cast<std::size_t>(same.in1 - tokens.begin()));
    }
    RC_ASSERT(trie.match("k", tokens) == static_cast<std::int64_t>(expected));
    const auto rows = trie.find("k", tokens);
    RC_ASSERT(rows.has_value() == (expected > 0));
    if (rows) {
      RC_ASSERT(tokens_in(*rows) == Ids(tokens.begin(), tokens.begin() + expected));
    }
    if (!tokens.empty()) {
      trie.insert("k", tokens, rows_of(tokens));
      known.push_back(tokens);
    }
  }
  std::size_t total = 0;
  trie.for_each([&](const TrieRows& node) {
    RC_ASSERT(tokens_in(node.rows) == Ids(node.path.begin() + node.rows.first(), node.path.end()));
    total += 100 * static_cast<std::size_t>(node.rows.last() - node.rows.first());
  });
  RC_ASSERT(trie.bytes() == total);
}

// With a budget and pins: never above it, and what is found is right.
RC_GTEST_PROP(TrieProperty, KeepsItsBudget, ()) {
  const auto budget = *rc::gen::inRange<std::size_t>(0, 3000);
  PrefixTrie trie(budget, {});
  std::vector<PrefixTrie::Pin> pins(3);
  const auto ids = rc::gen::container<Ids>(rc::gen::inRange(0, 3));
  for (const Ids& tokens : *rc::gen::container<std::vector<Ids>>(ids)) {
    if (tokens.empty()) {
      continue;
    }
    trie.insert("k", tokens, rows_of(tokens));
    pins[tokens.size() % 3] = trie.pin("k", tokens);
    RC_ASSERT(trie.bytes() <= budget);
    const auto rows = trie.find("k", tokens);
    if (rows) {
      RC_ASSERT(tokens_in(*rows) == Ids(tokens.begin(), tokens.begin() + rows->last()));
    }
  }
}

}  // namespace
}  // namespace saker::cache
