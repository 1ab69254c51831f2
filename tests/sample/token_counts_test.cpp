// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/token_counts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace saker::sample {
namespace {

using Context = std::vector<std::int32_t>;
using Counts = std::map<std::size_t, std::int32_t>;

constexpr std::int32_t kVocabulary = 9;

Counts counted(const TokenCounts& counts) {
  Counts result;
  for (const std::size_t id : counts.ids()) {
    EXPECT_TRUE(result.emplace(id, counts.count(id)).second) << id << " twice";
  }
  return result;
}

Counts recounted(const Context& context, std::size_t size) {
  Counts result;
  const std::size_t used = size == 0 ? context.size() : std::min(size, context.size());
  for (std::size_t i = context.size() - used; i < context.size(); ++i) {
    if (context[i] >= 0 && context[i] < kVocabulary) {
      ++result[static_cast<std::size_t>(context[i])];
    }
  }
  return result;
}

// A token or many more, fewer, another token somewhere, another context.
void change(Context& context) {
  const auto tokens = rc::gen::inRange(-1, kVocabulary + 2);
  const int kind = *rc::gen::inRange(0, 12);
  if (kind == 0) {
    context = *rc::gen::container<Context>(tokens);
  } else if (kind == 1 && !context.empty()) {
    context[*rc::gen::inRange<std::size_t>(0, context.size())] = *tokens;
  } else if (kind == 2) {
    context.resize(context.size() - std::min<std::size_t>(context.size(), 3));
  } else if (kind == 3) {
    const auto more = *rc::gen::container<Context>(tokens);
    context.insert(context.end(), more.begin(), more.end());
  } else {
    context.push_back(*tokens);
  }
}

RC_GTEST_PROP(TokenCounts, AreThoseOfTheWindowAfterAnyChange, ()) {
  const auto size = *rc::gen::element<std::size_t>(0, 1, 2, 5, 20);
  TokenCounts counts;
  Context context;
  for (int step = 0; step < 40; ++step) {
    change(context);
    counts.follow(context, size, kVocabulary);
    RC_ASSERT(counted(counts) == recounted(context, size));
  }
}

// A round gives three tokens at once, the next one more than the window holds.
TEST(TokenCounts, WindowsMoveByWholeRounds) {
  TokenCounts counts;
  Context context = {0, 1, 2};
  const auto after = [&](const Context& more) {
    context.insert(context.end(), more.begin(), more.end());
    counts.follow(context, 4, kVocabulary);
    return counted(counts);
  };
  EXPECT_EQ(after({}), (Counts{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(after({3, 4, 3}), (Counts{{2, 1}, {3, 2}, {4, 1}}));
  EXPECT_EQ(after({8, 5, 6, 7, 6}), (Counts{{5, 1}, {6, 2}, {7, 1}}));
}

TEST(TokenCounts, FollowAVocabularyOfAnotherSize) {
  TokenCounts counts;
  const Context context = {1, 5, 5};
  counts.follow(context, 0, 4);
  EXPECT_EQ(counted(counts), (Counts{{1, 1}}));
  counts.follow(context, 0, 6);
  EXPECT_EQ(counted(counts), (Counts{{1, 1}, {5, 2}}));
  counts.follow(context, 0, 2);
  EXPECT_EQ(counted(counts), (Counts{{1, 1}}));
}

}  // namespace
}  // namespace saker::sample
