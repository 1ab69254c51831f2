// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/prompt_lookup.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace saker::generate {
namespace {

using Ids = std::vector<std::int32_t>;

Ids proposed(Drafter& drafter, DraftState& state, const Ids& context, int depth) {
  Proposal proposal{.state = &state, .context = context, .depth = depth};
  drafter.propose({&proposal, 1});
  state.acknowledge(0);
  return proposal.tokens;
}

Ids proposed(const Ids& context, int depth) {
  PromptLookup drafter;
  const auto state = drafter.start({});
  return proposed(drafter, *state, context, depth);
}

TEST(PromptLookup, ProposesWhatFollowedTheLastTime) {
  EXPECT_EQ(proposed({1, 2, 3, 4, 5, 6, 9, 1, 2, 3}, 3), (Ids{4, 5, 6}));
  // The newer of two places, and the one that agrees longer.
  EXPECT_EQ(proposed({1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3}, 1), (Ids{5}));
  EXPECT_EQ(proposed({8, 1, 2, 3, 4, 7, 1, 2, 3, 5, 8, 1, 2, 3}, 1), (Ids{4}));
}

TEST(PromptLookup, ProposesNothingWithoutAMatch) {
  EXPECT_EQ(proposed({1}, 4), Ids());
  EXPECT_EQ(proposed({1, 2, 3}, 4), Ids());
  EXPECT_EQ(proposed({1, 2, 3, 4, 1, 2}, 4), Ids());
}

TEST(PromptLookup, APeriodGoesOn) {
  EXPECT_EQ(proposed({1, 2, 3, 1, 2, 3}, 7), (Ids{1, 2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(proposed({5, 5, 5, 5}, 3), (Ids{5, 5, 5}));
}

// The tokens after a prompt's end, and behind each place that the answer has in common.
TEST(PromptLookup, APredictionIsRepeated) {
  SequenceRequest request;
  request.prompt = {1, 2, 3, 4, 5};
  request.prediction = {7, 8, 9, 6, 10, 11, 12};
  PromptLookup drafter;
  const auto state = drafter.start(request);
  Ids context = request.prompt;
  EXPECT_EQ(proposed(drafter, *state, context, 3), (Ids{7, 8, 9}));
  context.insert(context.end(), {7, 8});
  EXPECT_EQ(proposed(drafter, *state, context, 2), (Ids{9, 6}));
  context.insert(context.end(), {20, 9, 6, 10});  // Left it, and came back.
  EXPECT_EQ(proposed(drafter, *state, context, 8), (Ids{11, 12}));
  context.insert(context.end(), {11, 12});
  EXPECT_EQ(proposed(drafter, *state, context, 8), Ids());
}

TEST(PromptLookup, AGrowingContextGivesWhatAWholeOneGives) {
  std::mt19937 random(3);
  PromptLookup drafter;
  const auto state = drafter.start({});
  Ids context;
  int found = 0;
  for (int i = 0; i < 2000; ++i) {
    context.push_back(static_cast<std::int32_t>(random() % 6));
    if (random() % 3 == 0) {
      const Ids tokens = proposed(drafter, *state, context, 4);
      EXPECT_EQ(tokens, proposed(context, 4));
      found += tokens.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(found, 100);
}

}  // namespace
}  // namespace saker::generate
