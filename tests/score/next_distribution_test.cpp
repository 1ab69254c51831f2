// SPDX-License-Identifier: Apache-2.0
#include "saker/score/next_distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace saker::score {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(NextDistribution, OrderTiesAndTail) {
  const std::vector<float> logits = {1.0F, 3.0F, 1.0F, 2.0F};
  const NextDistribution next = next_distribution(logits, 3);
  EXPECT_EQ(next.token_ids, (Ids{1, 3, 0}));
  EXPECT_EQ(next.vocab_size, 4);
  const double total = std::exp(3.0) + std::exp(2.0) + 2 * std::exp(1.0);
  EXPECT_NEAR(next.logprobs[0], 3.0 - std::log(total), 1e-12);
  EXPECT_NEAR(*next.tail_logprob, 1.0 - std::log(total), 1e-12);
  EXPECT_NEAR(next.tail_mass(), std::exp(1.0) / total, 1e-12);
  EXPECT_FALSE(next.tail_underflow);
}

TEST(NextDistribution, SmallTailsAreExact) {
  // 1 - sum would have lost five digits of 2 e^-25.
  const NextDistribution next = next_distribution(std::vector<float>{25.0F, 0.0F, 0.0F}, 1);
  EXPECT_NEAR(*next.tail_logprob, std::log(2.0) - 25.0, 1e-9);
  EXPECT_FALSE(next.tail_underflow);
}

// docs/scoring.md: 0.0 where the tail is at most 1e-12.
TEST(NextDistribution, TailThatUnderflows) {
  for (const float logit : {60.0F, 1000.0F}) {
    const NextDistribution next = next_distribution(std::vector<float>{logit, 0.0F, 0.0F}, 1);
    EXPECT_EQ(next.tail_logprob, 0.0);
    EXPECT_TRUE(next.tail_underflow);
    EXPECT_EQ(next.tail_mass(), 0.0);
  }
}

TEST(NextDistribution, NoTailWhenAllTokensAreThere) {
  for (const int top_k : {3, 256}) {
    const NextDistribution next = next_distribution(std::vector<float>{1.0F, 0.0F, 2.0F}, top_k);
    EXPECT_EQ(next.token_ids, (Ids{2, 0, 1}));
    EXPECT_FALSE(next.tail_logprob);
    EXPECT_FALSE(next.tail_underflow);
  }
}

TEST(NextDistribution, SumsToOne) {
  std::vector<float> logits(1000);
  std::iota(logits.begin(), logits.end(), 0.0F);
  for (float& x : logits) {
    x = std::fmod(x * 0.37F, 5.0F);
  }
  const NextDistribution next = next_distribution(logits, 100);
  double mass = next.tail_mass();
  for (const double logprob : next.logprobs) {
    mass += std::exp(logprob);
  }
  EXPECT_NEAR(mass, 1.0, 1e-12);
}

// No tail is known, which is not a small one.
TEST(NextDistribution, BrokenLogitsHaveNoTail) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<std::vector<float>> broken{
      {nan, nan, nan},
      {-infinity, -infinity, -infinity},
      {infinity, 0.0F, 1.0F},
      {0.0F, infinity, infinity},
      {1.0F, nan, nan},
  };
  for (const auto& logits : broken) {
    const NextDistribution next = next_distribution(logits, 1);
    ASSERT_TRUE(next.tail_logprob);
    EXPECT_TRUE(std::isnan(*next.tail_logprob)) << logits[0];
    EXPECT_FALSE(next.tail_underflow) << logits[0];
    EXPECT_TRUE(std::isnan(next.tail_mass())) << logits[0];
  }
  // Tokens that a model rules out are a tail of nothing.
  const auto alone = next_distribution(std::vector<float>{1.0F, -infinity, -infinity}, 1);
  EXPECT_EQ(alone.tail_logprob, 0.0);
  EXPECT_TRUE(alone.tail_underflow);
}

TEST(NextDistribution, NotANumberIsNeverAmongTheTail) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const NextDistribution next = next_distribution(std::vector<float>{nan, 1.0F, 0.0F}, 1);
  EXPECT_EQ(next.token_ids, Ids{1});
  EXPECT_NEAR(*next.tail_logprob, -std::log1p(std::exp(1.0)), 1e-12);
}

}  // namespace
}  // namespace saker::score
