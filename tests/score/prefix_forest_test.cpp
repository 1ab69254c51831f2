// SPDX-License-Identifier: Apache-2.0
#include "saker/score/prefix_forest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace saker::score {
namespace {

using Ids = std::vector<std::int32_t>;

PrefixForest forest_of(const std::vector<Ids>& texts, int min_saved) {
  const std::vector<TokenSpan> spans(texts.begin(), texts.end());
  return make_prefix_forest(spans, min_saved);
}

int row_count(const PrefixForest& forest) {
  int rows = 0;
  for (const PrefixSegment& segment : forest.segments) {
    rows += segment.end - segment.begin;
  }
  return rows;
}

TEST(PrefixForest, ChoicesOfOneQuestionShareIt) {
  const PrefixForest forest = forest_of({{1, 2, 3, 4}, {1, 2, 3, 5, 6}, {1, 2, 3, 7}, {9}}, 6);
  EXPECT_EQ(row_count(forest), 3 + 1 + 2 + 1 + 1);
  EXPECT_EQ(forest.segments.size(), 5U);
}

TEST(PrefixForest, SmallSavingsAreNotWorthAPassOfTheirOwn) {
  const PrefixForest forest = forest_of({{1, 2, 3, 4}, {1, 2, 3, 5, 6}, {1, 2, 3, 7}, {9}}, 7);
  EXPECT_EQ(row_count(forest), 4 + 5 + 4 + 1);
  EXPECT_EQ(forest.segments.size(), 4U);
}

TEST(PrefixForest, EqualSequencesAlwaysShare) {
  const PrefixForest forest = forest_of({{1, 2}, {1, 2}, {1, 2}, {1}}, 1000);
  EXPECT_EQ(row_count(forest), 3);
  EXPECT_EQ(forest.segments.size(), 2U);
}

TEST(PrefixForest, PrefixesOfOthersNeedNoRowsOfTheirOwn) {
  std::vector<Ids> texts;
  for (int size = 1; size <= 2000; ++size) {
    texts.emplace_back(static_cast<std::size_t>(size), 7);
  }
  const PrefixForest forest = forest_of(texts, 1);
  EXPECT_EQ(row_count(forest), 2000);
}

// Every sequence is covered by the chain of segments from the one that it ends with, and no rows
// are wasted beyond the bound.
RC_GTEST_PROP(PrefixForest, CoversEverySequence, ()) {
  const auto token = rc::gen::inRange<std::int32_t>(0, 3);
  const auto text = rc::gen::nonEmpty(rc::gen::container<Ids>(token));
  const auto texts = *rc::gen::container<std::vector<Ids>>(text);
  const int min_saved = *rc::gen::inRange(1, 20);
  const PrefixForest forest = forest_of(texts, min_saved);
  RC_ASSERT(forest.order.size() == texts.size());
  std::vector<int> covered(texts.size(), 0);
  for (std::size_t i = 0; i < forest.segments.size(); ++i) {
    const PrefixSegment& segment = forest.segments[i];
    RC_ASSERT(segment.begin < segment.end);
    RC_ASSERT(segment.parent < static_cast<int>(i));
    RC_ASSERT(
        segment.begin ==
        (segment.parent < 0 ? 0 : forest.segments[static_cast<std::size_t>(segment.parent)].end)
    );
    RC_ASSERT(segment.first_sequence < segment.last_sequence);
    const Ids& first =
        texts[static_cast<std::size_t>(forest.order[static_cast<std::size_t>(segment.first_sequence
        )])];
    for (int place = segment.first_sequence; place < segment.last_sequence; ++place) {
      const auto index = static_cast<std::size_t>(forest.order[static_cast<std::size_t>(place)]);
      const Ids& tokens = texts[index];
      RC_ASSERT(static_cast<int>(tokens.size()) >= segment.end);
      RC_ASSERT(std::equal(tokens.begin(), tokens.begin() + segment.end, first.begin()));
      RC_ASSERT(covered[index] == segment.begin);
      covered[index] = segment.end;
    }
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    RC_ASSERT(covered[i] == static_cast<int>(texts[i].size()));
  }
  if (min_saved == 1) {
    std::set<Ids> prefixes;
    for (const Ids& tokens : texts) {
      for (std::size_t end = 1; end <= tokens.size(); ++end) {
        prefixes.insert(Ids(tokens.begin(), tokens.begin() + static_cast<long>(end)));
      }
    }
    RC_ASSERT(row_count(forest) == static_cast<int>(prefixes.size()));
  }
}

}  // namespace
}  // namespace saker::score
