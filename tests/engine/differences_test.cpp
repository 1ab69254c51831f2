// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/measures/differences.h"

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

TEST(Differences, LeaveOutWhatIsNotFinite) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ScoreResult result;
  result.views.push_back(scores("base", {std::nullopt, -2.0, -1.0, -kInfinity}, 0.5));
  result.views.push_back(scores("ft", {std::nullopt, -1.0, kNan, -1.0}, 0.7));
  result.views.push_back(scores("broken", {std::nullopt, kNan, kNan, kNan}, 0.7));
  result.views.push_back(scores("null:1", {std::nullopt, -1.9, -0.9, -1.0}, 0.5));
  result.views.push_back(scores("null:2", {std::nullopt, kNan, kNan, kNan}, 0.5));
  result.views.push_back(scores("null:3", {std::nullopt, -1.7, -0.7, -1.0}, 0.5));
  std::vector<View> views = {{}};
  for (std::size_t i = 1; i < result.views.size(); ++i) {
    views.push_back({.key = result.views[i].view, .adapter = "a", .strength = 0.5});
    if (i > 2) {
      views.back().null = NullView{.seed = i};
    }
  }
  const Differences all = differences(result, views);
  EXPECT_EQ(all.views[0].total.sum, 1.0);
  EXPECT_EQ(all.views[0].total.left_out, 2U);
  EXPECT_EQ(all.views[0].mean_change, 1.0);
  EXPECT_NEAR(*all.views[0].z, (1.0 - 0.2) / 0.1, 1e-9);
  const ViewDifference& broken = all.views[1];
  EXPECT_EQ(broken.total.left_out, 3U);
  for (const double value :
       {broken.total.sum, broken.total.mean, broken.mean_change, broken.mean_interval.low}) {
    EXPECT_TRUE(std::isnan(value));
  }
  EXPECT_FALSE(broken.z);
  // One null alone says nothing.
  result.views.pop_back();
  views.pop_back();
  EXPECT_FALSE(differences(result, views).views[0].z);
}

TEST(Differences, ACurveNeedsThreeStrengthsThatDiffer) {
  ScoreResult result;
  std::vector<View> views = {{}};
  result.views.push_back(scores("base", {std::nullopt, -2.0}, 0.5));
  for (const char* key : {"ft", "1", "law@1"}) {
    result.views.push_back(scores(key, {std::nullopt, -1.0}, 0.7));
    views.push_back({.key = key, .adapter = "a"});
  }
  EXPECT_FALSE(differences(result, views).ablation);
  result.views.push_back(scores("0.5", {std::nullopt, -1.5}, 0.6));
  views.push_back({.key = "0.5", .adapter = "a", .strength = 0.5});
  const Differences all = differences(result, views);
  ASSERT_TRUE(all.ablation);
  const std::vector<double> strengths = {0.0, 1.0, 0.5};
  const std::vector<double> js = {0.0, all.views[0].next->js, all.views[3].next->js};
  EXPECT_EQ(all.ablation->linearity, score::ablation_curve(strengths, js).linearity);
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
