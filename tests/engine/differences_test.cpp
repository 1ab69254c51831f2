// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/differences.h"

#include "saker/base/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace saker::engine {
namespace {

ViewScores scores(const std::string& view, score::TokenLogprobs logprobs, double best) {
  ViewScores result{.view = view, .logprobs = std::move(logprobs)};
  result.next = score::NextDistribution{
      {0, 1}, {std::log(best), std::log(0.9 - best)}, std::log(0.1), false, 10
  };
  return result;
}

TEST(Differences, AreThoseFromTheFirstView) {
  ScoreResult result;
  result.views.push_back(scores("base", {std::nullopt, -2.0, -1.0}, 0.5));
  result.views.push_back(scores("ft", {std::nullopt, -0.5, -1.5}, 0.8));
  const std::vector<View> views = {{}, {.key = "ft", .adapter = "a"}};
  const Differences all = differences(result, views);
  EXPECT_EQ(all.reference, "base");
  ASSERT_EQ(all.views.size(), 1U);
  const ViewDifference& tuned = all.views[0];
  EXPECT_EQ(tuned.view, "ft");
  EXPECT_EQ(tuned.deltas, (score::TokenLogprobs{std::nullopt, 1.5, -0.5}));
  EXPECT_EQ(tuned.total.mean, 0.5);
  EXPECT_EQ(tuned.mean_change, 1.0);
  EXPECT_EQ(tuned.mean_interval.low, -0.5);
  EXPECT_EQ(tuned.mean_interval.high, 1.5);
  EXPECT_EQ(tuned.next->js, score::divergence(*result.views[0].next, *result.views[1].next).js);
  EXPECT_FALSE(tuned.z);
  EXPECT_FALSE(all.ablation);
  EXPECT_THROW(differences(result, std::span(views).first(1)), Error);
}

TEST(Differences, NullsAndStrengthsGiveScoresAndACurve) {
  ScoreResult result;
  result.views.push_back(scores("base", {std::nullopt, -2.0}, 0.5));
  result.views.push_back(scores("0.5", {std::nullopt, -1.5}, 0.6));
  result.views.push_back(scores("ft", {std::nullopt, -1.0}, 0.7));
  result.views.push_back(scores("null:1", {std::nullopt, -1.9}, 0.5));
  result.views.push_back(scores("null:2", {std::nullopt, -1.7}, 0.5));
  const std::vector<View> views = {
      {},
      {.key = "0.5", .adapter = "a", .strength = 0.5},
      {.key = "ft", .adapter = "a"},
      {.key = "null:1", .adapter = "a", .null = NullView{.seed = 1}},
      {.key = "null:2", .adapter = "a", .null = NullView{.seed = 2}},
  };
  const Differences all = differences(result, views);
  EXPECT_NEAR(*all.views[1].z, (1.0 - 0.2) / 0.1, 1e-9);
  EXPECT_FALSE(all.views[2].z);
  ASSERT_TRUE(all.ablation);
  const std::vector<double> strengths = {0.0, 0.5, 1.0};
  const std::vector<double> js = {0.0, all.views[0].next->js, all.views[1].next->js};
  EXPECT_EQ(all.ablation->linearity, score::ablation_curve(strengths, js).linearity);
}

TEST(Differences, ACurveStartsAtTheBase) {
  ScoreResult result;
  std::vector<View> views;
  for (const double strength : {1.0, 0.25, 0.5, 0.75}) {
    result.views.push_back(scores(std::to_string(strength), {std::nullopt, -2.0}, strength));
    views.push_back({.key = std::to_string(strength), .adapter = "a", .strength = strength});
  }
  EXPECT_FALSE(differences(result, views).ablation);
}

TEST(Differences, OfABrokenModelHaveNoDivergence) {
  ScoreResult result;
  result.views.push_back(scores("base", {std::nullopt}, 0.5));
  result.views.push_back(scores("ft", {std::nullopt}, 0.7));
  result.views[1].next->logprobs[0] = std::numeric_limits<double>::quiet_NaN();
  const std::vector<View> views = {{}, {.key = "ft", .adapter = "a"}};
  const Differences all = differences(result, views);
  EXPECT_FALSE(all.views[0].next);
  EXPECT_EQ(all.views[0].total.count, 0U);
}

}  // namespace
}  // namespace saker::engine
