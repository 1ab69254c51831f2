// SPDX-License-Identifier: Apache-2.0
#include "saker/base/log_prob.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace saker {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
using Top = std::vector<std::pair<std::int32_t, double>>;

// Few levels make ties.
std::vector<float> any_row() {
  const auto levels = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-40, 40));
  return {levels.begin(), levels.end()};
}

RC_GTEST_PROP(LogProb, SumsOverRowsOfAnyLength, ()) {
  const std::vector<float> row = any_row();
  RC_PRE(!row.empty());
  double sum = 0.0;
  for (const float x : row) {
    sum += std::exp(static_cast<double>(x));
  }
  RC_ASSERT(std::abs(log_sum_exp(row) - std::log(sum)) <= 1e-13 * (1.0 + std::abs(std::log(sum))));
}

RC_GTEST_PROP(LogProb, TopTokensAreTheFirstOfTheSorted, ()) {
  const std::vector<float> row = any_row();
  RC_PRE(!row.empty());
  const int count = *rc::gen::inRange(0, static_cast<int>(row.size()) + 3);
  Top sorted;
  for (std::size_t i = 0; i < row.size(); ++i) {
    sorted.emplace_back(static_cast<std::int32_t>(i), static_cast<double>(row[i]) - 1.5);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second > b.second;
  });
  RC_ASSERT(best_token(row) == sorted.front().first);
  sorted.resize(std::min(sorted.size(), static_cast<std::size_t>(count)));
  RC_ASSERT(top_tokens(row, count, 1.5) == sorted);
}

TEST(LogProb, LargeAndSmallLogits) {
  const std::vector<float> large = {1e30F, 1e30F};
  EXPECT_NEAR(log_sum_exp(large), static_cast<double>(1e30F), 1e15);
  const std::vector<float> small = {-1000.0F, -1000.0F};
  EXPECT_NEAR(log_sum_exp(small), -1000.0 + std::log(2.0), 1e-12);
}

TEST(LogProb, NaNCountsAsMinusInfinity) {
  const std::vector<float> row = {kNaN, 1.0F, -kInfinity, 1.0F};
  EXPECT_EQ(max_logit(row), 1.0F);
  EXPECT_EQ(best_token(row), 1);
  EXPECT_NEAR(log_sum_exp(row), 1.0 + std::log(2.0), 1e-12);
  EXPECT_EQ(log_prob(row, 0, 0.0), -std::numeric_limits<double>::infinity());
  const Top top = top_tokens(row, 4, 0.0);
  EXPECT_EQ(top[0].first, 1);
  EXPECT_EQ(top[1].first, 3);
  EXPECT_EQ(top[2].first, 0);
  EXPECT_EQ(top[3].first, 2);
}

TEST(LogProb, RowsWithoutAFiniteLogit) {
  const std::vector<float> none = {kNaN, -kInfinity};
  EXPECT_EQ(max_logit(none), -kInfinity);
  EXPECT_EQ(log_sum_exp(none), -std::numeric_limits<double>::infinity());
  const std::vector<float> infinite = {0.0F, kInfinity};
  EXPECT_EQ(log_sum_exp(infinite), std::numeric_limits<double>::infinity());
  EXPECT_EQ(best_token(infinite), 1);
}

}  // namespace
}  // namespace saker
