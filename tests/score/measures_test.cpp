// SPDX-License-Identifier: Apache-2.0
#include "saker/score/measures.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace saker::score {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::array kStrengths = {0.0, 0.25, 0.5, 0.75, 1.0, 1.25};

TEST(TokenDeltas, AreTunedMinusBaseWhereBothAreScored) {
  const TokenLogprobs base = {std::nullopt, -2.0, -1.0, std::nullopt};
  const TokenLogprobs tuned = {std::nullopt, -0.5, -1.5, -1.0};
  const TokenLogprobs deltas = token_deltas(base, tuned);
  EXPECT_EQ(deltas, (TokenLogprobs{std::nullopt, 1.5, -0.5, std::nullopt}));
  const Summary total = summary(deltas);
  EXPECT_EQ(total.count, 2U);
  EXPECT_EQ(total.sum, 1.0);
  EXPECT_EQ(total.mean, 0.5);
  EXPECT_EQ(summary({std::nullopt}).mean, 0.0);
  EXPECT_TRUE(std::isnan(summary({std::nullopt, kNan}).mean));
  EXPECT_THROW(token_deltas(base, {}), Error);
}

// Golden values of delta_kl as dlm-sway computes it: the raw value is the mean over prompts.
TEST(Summary, OfTheGoldenDivergences) {
  const Summary golden = summary({0.0106373, 0.0067261, 0.0136834, 0.0361589});
  EXPECT_NEAR(golden.mean, 0.0168015, 1e-7);
}

// adapter_ablation over its default strengths: a line passes all three thresholds.
TEST(AblationCurve, OfALine) {
  std::vector<double> divergences(kStrengths.begin(), kStrengths.end());
  for (double& x : divergences) {
    x *= 0.04;
  }
  const AblationCurve curve = ablation_curve(kStrengths, divergences);
  EXPECT_NEAR(curve.linearity, 1.0, 1e-12);
  EXPECT_EQ(curve.saturation, 1.0);
  EXPECT_NEAR(curve.overshoot, 1.25, 1e-12);
}

TEST(AblationCurve, OfAnAdapterThatSaturatesAndCollapses) {
  const std::vector<double> divergences = {0.0, 0.8, 0.95, 1.0, 1.0, 0.5};
  const AblationCurve curve = ablation_curve(kStrengths, divergences);
  EXPECT_EQ(curve.saturation, 0.5);  // The first with 90 % of that at 1.
  EXPECT_EQ(curve.overshoot, 0.5);
  // Squared correlation, from numpy.corrcoef.
  EXPECT_NEAR(curve.linearity, 0.1812466702184336, 1e-12);
}

TEST(AblationCurve, EdgesAreDefined) {
  const AblationCurve flat = ablation_curve(kStrengths, std::vector<double>(6, 0.0));
  EXPECT_EQ(flat.linearity, 1.0);
  EXPECT_FALSE(flat.saturation);
  EXPECT_EQ(flat.overshoot, 1.0);
  // Without strength 1 the largest one below it counts, and there is no overshoot.
  const std::vector<double> some = {0.5, 0.0, 2.0};
  const AblationCurve partial = ablation_curve(some, std::vector<double>{0.2, 0.0, 0.9});
  EXPECT_EQ(partial.saturation, 0.5);
  EXPECT_EQ(partial.overshoot, 1.0);
  EXPECT_THROW(ablation_curve(kStrengths, some), Error);
  testing::expect_error(ErrorCode::kInvalidArgument, {"got 2 different", "3 or more"}, [&] {
    ablation_curve(std::vector<double>{0.0, 1.0, 1.0}, some);
  });
  EXPECT_THROW(ablation_curve(some, std::vector<double>{0.2, kNan, 0.9}), Error);
}

// z = (raw - mean) / max(std, 1e-6) with the population's deviation; score = sigmoid(z / 3).
TEST(ZScore, AgainstNulls) {
  const NullStatistics nulls = null_statistics(std::vector<double>{1.0, 2.0, 3.0});
  EXPECT_EQ(nulls.mean, 2.0);
  EXPECT_NEAR(nulls.deviation, std::sqrt(2.0 / 3.0), 1e-15);
  EXPECT_EQ(nulls.count, 3U);
  EXPECT_NEAR(*z_score(4.0, nulls), 2.0 / std::sqrt(2.0 / 3.0), 1e-12);
  EXPECT_FALSE(z_score(kNan, nulls));
  const NullStatistics same = null_statistics(std::vector<double>{0.5, 0.5});
  EXPECT_NEAR(*z_score(0.5 + 3e-6, same), 3.0, 1e-6);
  EXPECT_THROW(null_statistics({}), Error);
  EXPECT_THROW(null_statistics(std::vector<double>{kNan}), Error);
}

TEST(Bootstrap, CoversTheMeanAndRepeats) {
  std::vector<double> values;
  values.reserve(200);
  for (int i = 0; i < 200; ++i) {
    values.push_back(std::sin(i * 0.7) + 0.25);
  }
  const Interval interval = bootstrap_interval(values, {});
  // The normal approximation: mean +- 1.96 sigma / sqrt(n), sigma = sqrt(1/2).
  EXPECT_NEAR(interval.low, 0.25 - 0.098, 0.02);
  EXPECT_NEAR(interval.high, 0.25 + 0.098, 0.02);
  const Interval again = bootstrap_interval(values, {});
  EXPECT_EQ(interval.low, again.low);
  EXPECT_EQ(interval.high, again.high);
  EXPECT_NE(interval.low, bootstrap_interval(values, {.seed = 1}).low);
  const Interval narrow = bootstrap_interval(values, {.confidence = 0.5});
  EXPECT_LT(narrow.high - narrow.low, interval.high - interval.low);
}

TEST(Bootstrap, EdgesAreDefined) {
  const Interval one = bootstrap_interval(std::vector<double>{3.0}, {});
  EXPECT_EQ(one.low, 3.0);
  EXPECT_EQ(one.high, 3.0);
  const std::vector<double> values = {1.0, 2.0};
  EXPECT_THROW(bootstrap_interval({}, {}), Error);
  EXPECT_THROW(bootstrap_interval(std::vector<double>{kNan}, {}), Error);
  EXPECT_THROW(bootstrap_interval(values, {.resamples = 0}), Error);
  EXPECT_THROW(bootstrap_interval(values, {.confidence = 1.0}), Error);
}

}  // namespace
}  // namespace saker::score
