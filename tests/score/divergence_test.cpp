// SPDX-License-Identifier: Apache-2.0
#include "saker/score/divergence.h"

#include "saker/base/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace saker::score {
namespace {

NextDistribution distribution(
    std::vector<std::int32_t> ids, const std::vector<double>& probabilities, double tail
) {
  NextDistribution next;
  next.token_ids = std::move(ids);
  for (const double p : probabilities) {
    next.logprobs.push_back(std::log(p));
  }
  if (tail > 0.0) {
    next.tail_logprob = std::log(tail);
  }
  return next;
}

// Support alignment: an id that one side lacks gets an equal share of that side's tail.
TEST(Align, SharesTheTailAmongMissingIds) {
  const auto base = distribution({4, 2}, {0.6, 0.3}, 0.1);
  const auto tuned = distribution({2, 9, 7}, {0.5, 0.2, 0.1}, 0.2);
  const AlignedProbabilities aligned = align(base, tuned);
  // Ids 2, 4, 7, 9: base has .3, .6 and twice .05; tuned .5, .2, .1, .2, which sum to 1.
  const std::vector<double> base_wanted = {0.3, 0.6, 0.05, 0.05};
  const std::vector<double> tuned_wanted = {0.5, 0.2, 0.1, 0.2};
  ASSERT_EQ(aligned.base.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(aligned.base[i], base_wanted[i], 1e-12);
    EXPECT_NEAR(aligned.tuned[i], tuned_wanted[i], 1e-12);
  }
}

TEST(Align, RenormalizesWhatIsThere) {
  // Nothing is missing, so the tail goes nowhere.
  const auto base = distribution({0, 1}, {0.6, 0.2}, 0.2);
  const auto tuned = distribution({1, 0}, {0.5, 0.25}, 0.25);
  const AlignedProbabilities aligned = align(base, tuned);
  EXPECT_NEAR(aligned.base[0], 0.75, 1e-12);
  EXPECT_NEAR(aligned.tuned[1], 2.0 / 3.0, 1e-12);
}

TEST(Align, UnderflowedTailsAreEmpty) {
  auto base = distribution({0, 1}, {0.75, 0.25}, 0.0);
  base.tail_logprob = 0.0;
  base.tail_underflow = true;
  const AlignedProbabilities aligned = align(base, distribution({0, 2}, {0.5, 0.25}, 0.25));
  EXPECT_EQ(aligned.base[2], 0.0);
}

TEST(Align, RefusesWhatOnlyABrokenModelGives) {
  const auto good = distribution({0, 1}, {0.6, 0.4}, 0.0);
  auto bad = good;
  bad.logprobs[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(align(good, bad), Error);
  EXPECT_THROW(align(distribution({0, 1}, {0.5, 0.5}, 0.0), good), Error);
  EXPECT_THROW(align(good, NextDistribution{}), Error);
  EXPECT_NO_THROW(align(distribution({0}, {1.0}, 0.0), good));  // One candidate has no spread.
}

TEST(Kl, OfKnownDistributions) {
  const std::vector<double> p = {0.5, 0.5};
  const std::vector<double> q = {0.9, 0.1};
  EXPECT_NEAR(kl_divergence(p, q), 0.5 * std::log(0.5 / 0.9) + 0.5 * std::log(5.0), 1e-12);
  EXPECT_EQ(kl_divergence(p, p), 0.0);
  // q is floored at 1e-12, and 0 log 0 is 0.
  EXPECT_NEAR(
      kl_divergence(std::vector<double>{1.0, 0.0}, std::vector<double>{0.0, 1.0}),
      12.0 * std::numbers::ln10,
      1e-12
  );
  EXPECT_THROW(kl_divergence(p, std::vector<double>{1.0}), Error);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THROW(kl_divergence(std::vector<double>{infinity, 0.0}, p), Error);
}

// JS is symmetric and lies in [0, ln 2].
TEST(Js, BoundsAndSymmetry) {
  const std::vector<double> p = {1.0, 0.0};
  const std::vector<double> q = {0.0, 1.0};
  EXPECT_EQ(js_divergence(p, p), 0.0);
  EXPECT_NEAR(js_divergence(p, q), std::numbers::ln2, 1e-12);
  const std::vector<double> r = {0.3, 0.7};
  EXPECT_EQ(js_divergence(p, r), js_divergence(r, p));
  const double wanted =
      0.5 * std::log(1.0 / 0.65) + 0.5 * (0.3 * std::log(0.3 / 0.65) + 0.7 * std::log(0.7 / 0.35));
  EXPECT_NEAR(js_divergence(p, r), wanted, 1e-12);
}

// kind "kl" means KL(ft || base).
TEST(Divergence, KlIsThatOfTunedFromBase) {
  const auto base = distribution({0, 1}, {0.9, 0.1}, 0.0);
  const auto tuned = distribution({0, 1}, {0.6, 0.4}, 0.0);
  const Divergence got = divergence(base, tuned);
  EXPECT_NEAR(got.kl, 0.6 * std::log(0.6 / 0.9) + 0.4 * std::log(4.0), 1e-12);
  EXPECT_NEAR(got.js, divergence(tuned, base).js, 1e-15);
}

}  // namespace
}  // namespace saker::score
