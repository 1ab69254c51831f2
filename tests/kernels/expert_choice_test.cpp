// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/experts/expert_choice.h"

#include "saker/base/error.h"

#include "tests/kernels/rows.h"
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace saker::kernels {
namespace {

float largest_difference(const mx::array& a, const mx::array& b) {
  return mx::max(mx::abs(mx::subtract(a, b))).item<float>();
}

RouterOptions softmax(int chosen) {
  return {.chosen = chosen};
}

RouterOptions softmax_of_chosen(int chosen) {
  return {.chosen = chosen, .score = RouterScore::kSoftmaxOfChosen};
}

RouterTensors with_bias(std::vector<float> bias) {
  const int experts = static_cast<int>(bias.size());
  return {.bias = mx::array(bias.begin(), {experts}), .scales = {}};
}

constexpr std::array kScores{
    RouterScore::kSoftmax,
    RouterScore::kSoftmaxOfChosen,
    RouterScore::kSigmoid,
    RouterScore::kSqrtSoftplus,
};

// In each combination of rules; experts are 24.
std::vector<RouterOptions> many_options() {
  std::vector<RouterOptions> result;
  for (const RouterScore score : kScores) {
    for (const int chosen : {1, 3, 6}) {
      result.push_back({.chosen = chosen, .score = score});
      result.push_back({.chosen = chosen, .score = score, .softcap = 2.0F, .scale = 2.5F});
      for (const auto group_score : {GroupScore::kLargest, GroupScore::kLargestTwo}) {
        result.push_back({
            .chosen = chosen,
            .score = score,
            .groups = 4,
            .kept_groups = 2,
            .group_score = group_score,
            .normalized = true,
            .epsilon = 1e-6F,
        });
      }
    }
  }
  return result;
}

TEST(ChooseExperts, IsTheReference) {
  constexpr int kExperts = 24;
  const auto values = to_vector(random_rows(1, kExperts, 8));
  const std::vector<RouterTensors> tensors = {
      {},
      with_bias(values),
      {.bias = {}, .scales = mx::array(values.begin(), {kExperts})},
  };
  for (const RouterOptions& options : many_options()) {
    for (const RouterTensors& own : tensors) {
      const auto logits = 3.0F * random_rows(50, kExperts, 6);
      const auto choice = choose_experts(logits, options, own);
      const auto reference = choose_experts_reference(logits, options, own);
      EXPECT_EQ(to_vector<int>(choice.ids), to_vector<int>(reference.ids));
      EXPECT_LT(largest_difference(choice.weights, reference.weights), 2e-5F);
    }
  }
}

TEST(ChooseExperts, SharesOfTheChosenSumToOne) {
  const auto weights = choose_experts(random_rows(9, 8, 1), softmax_of_chosen(3)).weights;
  EXPECT_LT(largest_difference(mx::sum(weights, 1), mx::ones({9})), 1e-6F);
}

TEST(ChooseExperts, EqualScoresGoToTheLowerExpert) {
  const auto logits = mx::array({1.0F, 2.0F, 2.0F, 1.0F, 2.0F, 1.0F}, {1, 6});
  for (const RouterScore score : kScores) {
    RouterOptions options{.chosen = 4, .score = score};
    for (const auto& tensors : {RouterTensors{}, with_bias(std::vector<float>(6, -3.0F))}) {
      const auto ids = choose_experts(logits, options, tensors).ids;
      EXPECT_EQ(to_vector<int>(ids), (std::vector<int>{1, 2, 4, 0}));
    }
    // All groups are equal.
    options = {.chosen = 2, .score = score, .groups = 3, .kept_groups = 1};
    EXPECT_EQ(to_vector<int>(choose_experts(logits, options).ids), (std::vector<int>{1, 0}));
  }
}

TEST(ChooseExperts, BiasesChooseAndDoNotWeigh) {
  const auto logits = mx::array({0.0F, 0.0F, 0.0F, 0.0F}, {1, 4});
  const RouterOptions options{.chosen = 2, .score = RouterScore::kSigmoid, .scale = 3.0F};
  const auto choice = choose_experts(logits, options, with_bias({0.0F, 0.5F, -0.5F, 1.0F}));
  EXPECT_EQ(to_vector<int>(choice.ids), (std::vector<int>{3, 1}));
  EXPECT_EQ(to_vector(choice.weights), (std::vector<float>{1.5F, 1.5F}));
}

// Where biases are negative, an expert outside the kept groups would win with a key of 0.
TEST(ChooseExperts, GroupsThatAreNotKeptNeverWin) {
  const auto logits = mx::array({0.0F, -1.0F, 3.0F, -9.0F}, {1, 4});
  const RouterOptions options{
      .chosen = 2,
      .score = RouterScore::kSigmoid,
      .groups = 2,
      .kept_groups = 1,
      .group_score = GroupScore::kLargestTwo,
  };
  const auto bias = with_bias({-2.0F, -2.0F, -2.0F, -9.0F});
  EXPECT_EQ(to_vector<int>(choose_experts(logits, options, bias).ids), (std::vector<int>{0, 1}));
  RouterOptions largest = options;
  largest.group_score = GroupScore::kLargest;
  EXPECT_EQ(to_vector<int>(choose_experts(logits, largest, bias).ids), (std::vector<int>{2, 3}));
}

// Scores of which float32 exponentials overflow or vanish.
TEST(ChooseExperts, ExtremeScoresHaveFiniteWeights) {
  const auto logits = mx::array({3e38F, 1e4F, -1e4F, -3e38F}, {1, 4});
  for (const RouterScore score : kScores) {
    const RouterOptions options{.chosen = 4, .score = score, .normalized = true};
    const auto weights = to_vector(choose_experts(logits, options).weights);
    for (const float weight : weights) {
      EXPECT_TRUE(std::isfinite(weight));
    }
  }
}

TEST(ChooseExperts, BadScoresStayInTheirRow) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto logits =
      mx::array({kNaN, 1.0F, 2.0F, -kInf, 1.0F, 2.0F, kInf, 1.0F, 2.0F, kNaN, kNaN, kNaN}, {4, 3});
  const auto choice = choose_experts(logits, softmax_of_chosen(2));
  EXPECT_EQ(to_vector<int>(choice.ids), (std::vector<int>{2, 1, 2, 1, 0, 2, 0, 1}));
  const auto weights = to_vector(choice.weights);
  for (const std::size_t row : {0U, 2U, 3U}) {
    EXPECT_TRUE(std::isnan(weights[2 * row]) && std::isnan(weights[2 * row + 1])) << row;
  }
  EXPECT_NEAR(weights[2] + weights[3], 1.0F, 1e-6F);
  const RouterOptions sigmoid{.chosen = 2, .score = RouterScore::kSigmoid};
  const auto sigmoids = to_vector(choose_experts(logits, sigmoid, with_bias({0, 0, 0})).weights);
  for (std::size_t i = 0; i < sigmoids.size(); ++i) {
    EXPECT_EQ(std::isnan(sigmoids[i]), i / 2 == 0 || i / 2 == 3) << i;
  }
}

TEST(SortByExpert, KeepsPairsOfOneExpertInOrder) {
  const auto ids = mx::array({2, 0, 1, 2, 0, 2}, {3, 2});
  const auto sorted = sort_by_expert(ids, 4);
  EXPECT_EQ(to_vector<int>(sorted.pairs), (std::vector<int>{1, 4, 2, 0, 3, 5}));
  EXPECT_EQ(to_vector<int>(sorted.experts), (std::vector<int>{0, 0, 1, 2, 2, 2}));
  const auto reference = sort_by_expert_reference(ids);
  EXPECT_EQ(to_vector<int>(reference.experts), to_vector<int>(sorted.experts));
}

TEST(GatherRows, TakesARowForEachPair) {
  const auto sorted = sort_by_expert(mx::array({2, 0, 1, 2, 0, 2}, {3, 2}), 4);
  const auto x = mx::array({10.0F, 20.0F, 30.0F}, {3, 1});
  EXPECT_EQ(to_vector(gather_rows(x, sorted)), (std::vector<float>{10, 30, 20, 10, 20, 30}));
}

TEST(CombineExperts, IsTheReference) {
  for (const int ranks : {1, 2, 8}) {
    const auto choice = choose_experts(random_rows(33, 9, 4), softmax(ranks));
    const auto sorted = sort_by_expert(choice.ids, 9);
    const auto y = random_rows(33 * ranks, 40, 5);
    const auto sum = combine_experts(y, sorted, choice.weights);
    EXPECT_LT(largest_difference(sum, combine_experts_reference(y, sorted, choice.weights)), 1e-5F);
    EXPECT_EQ(
        combine_experts(mx::astype(y, mx::bfloat16), sorted, choice.weights).dtype(), mx::bfloat16
    );
  }
}

TEST(ExpertChoice, RefusesWrongShapes) {
  EXPECT_THROW(choose_experts(mx::zeros({2, 3}), softmax(4)), Error);
  EXPECT_THROW(choose_experts(mx::zeros({2, 3}), softmax(0)), Error);
  EXPECT_THROW(choose_experts(mx::zeros({3}), softmax(1)), Error);
  EXPECT_THROW(choose_experts(mx::zeros({2, 3}), {.chosen = 1, .groups = 2}), Error);
  EXPECT_THROW(choose_experts(mx::zeros({2, 4}), {.chosen = 3, .groups = 2}), Error);
  EXPECT_THROW(choose_experts(mx::zeros({2, 4}), softmax(1), with_bias({1, 2, 3})), Error);
  EXPECT_THROW(sort_by_expert(mx::zeros({2, 3}), 4), Error);
  const auto sorted = sort_by_expert(mx::array({1, 0}, {2, 1}), 2);
  EXPECT_THROW(combine_experts(mx::zeros({3, 4}), sorted, mx::zeros({2, 1})), Error);
}

}  // namespace
}  // namespace saker::kernels
