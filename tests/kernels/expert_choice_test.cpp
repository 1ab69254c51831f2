// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/experts/expert_choice.h"

#include "saker/base/error.h"

#include "tests/kernels/rows.h"
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace saker::kernels {
namespace {

float largest_difference(const mx::array& a, const mx::array& b) {
  return mx::max(mx::abs(mx::subtract(a, b))).item<float>();
}

TEST(ChooseExperts, IsTheReference) {
  for (const auto rule : {SoftmaxOrder::kBeforeTopK, SoftmaxOrder::kAfterTopK}) {
    for (const int count : {1, 3, 17}) {
      const auto scores = 3.0F * random_rows(50, 17, 6);
      const auto choice = choose_experts(scores, count, rule);
      const auto reference = choose_experts_reference(scores, count, rule);
      EXPECT_EQ(to_vector<int>(choice.ids), to_vector<int>(reference.ids));
      EXPECT_LT(largest_difference(choice.weights, reference.weights), 1e-6F);
    }
  }
}

TEST(ChooseExperts, SharesOfTheChosenSumToOne) {
  const auto weights = choose_experts(random_rows(9, 8, 1), 3, SoftmaxOrder::kAfterTopK).weights;
  EXPECT_LT(largest_difference(mx::sum(weights, 1), mx::ones({9})), 1e-6F);
}

TEST(ChooseExperts, EqualScoresGoToTheLowerExpert) {
  const auto scores = mx::array({1.0F, 2.0F, 2.0F, 1.0F, 2.0F}, {1, 5});
  EXPECT_EQ(
      to_vector<int>(choose_experts(scores, 4, SoftmaxOrder::kBeforeTopK).ids),
      (std::vector<int>{1, 2, 4, 0})
  );
}

TEST(ChooseExperts, BadScoresStayInTheirRow) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto scores =
      mx::array({kNaN, 1.0F, 2.0F, -kInf, 1.0F, 2.0F, kInf, 1.0F, 2.0F, kNaN, kNaN, kNaN}, {4, 3});
  const auto choice = choose_experts(scores, 2, SoftmaxOrder::kAfterTopK);
  EXPECT_EQ(to_vector<int>(choice.ids), (std::vector<int>{2, 1, 2, 1, 0, 2, 0, 1}));
  const auto weights = to_vector(choice.weights);
  for (const std::size_t row : {0U, 2U, 3U}) {
    EXPECT_TRUE(std::isnan(weights[2 * row]) && std::isnan(weights[2 * row + 1])) << row;
  }
  EXPECT_NEAR(weights[2] + weights[3], 1.0F, 1e-6F);
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
    const auto choice = choose_experts(random_rows(33, 9, 4), ranks, SoftmaxOrder::kBeforeTopK);
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
  EXPECT_THROW(choose_experts(mx::zeros({2, 3}), 4, SoftmaxOrder::kBeforeTopK), Error);
  EXPECT_THROW(choose_experts(mx::zeros({2, 3}), 0, SoftmaxOrder::kBeforeTopK), Error);
  EXPECT_THROW(choose_experts(mx::zeros({3}), 1, SoftmaxOrder::kBeforeTopK), Error);
  EXPECT_THROW(sort_by_expert(mx::zeros({2, 3}), 4), Error);
  const auto sorted = sort_by_expert(mx::array({1, 0}, {2, 1}), 2);
  EXPECT_THROW(combine_experts(mx::zeros({3, 4}), sorted, mx::zeros({2, 1})), Error);
}

}  // namespace
}  // namespace saker::kernels
