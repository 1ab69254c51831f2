// SPDX-License-Identifier: Apache-2.0
// Rows of a few logits whose token can be told by hand, one option at a time.
#include "saker/sample/acceptance.h"
#include "saker/sample/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace saker::sample {
namespace {

struct Case {
  std::string name;
  SamplingOptions options;
  std::vector<float> logits;
  std::vector<std::int32_t> context;
  std::int32_t token;
};

std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.name;
}

std::vector<float> logits_of(std::vector<float> probabilities) {
  for (float& value : probabilities) {
    value = std::log(value);
  }
  return probabilities;
}

std::vector<Case> penalties() {
  return {
      {"presence", {.presence_penalty = 6.0}, {0, 5, 4}, {1}, 2},
      {"presence_less_than_the_lead", {.presence_penalty = 0.5}, {0, 5, 4}, {1}, 1},
      {"repetition", {.repetition_penalty = 2.0}, {0, 5, 4}, {1}, 2},
      {"negative_repetition", {.repetition_penalty = 4.0}, {-5, -1, -3}, {1}, 2},
      {"frequency", {.frequency_penalty = 0.75}, {0, 5, 4}, {1, 1}, 2},
      {"one_occurrence", {.frequency_penalty = 0.75}, {0, 5, 4}, {1}, 1},
      {"outside_of_the_window",
       {.repetition_penalty = 2.0, .repetition_context_size = 1},
       {0, 5, 4},
       {1, 0},
       1},
  };
}

// At these temperatures each of the other tokens would come in some of 200 draws.
std::vector<Case> filters() {
  const std::vector<float> falling = logits_of({0.5F, 0.3F, 0.2F});
  return {
      {"top_p", {.temperature = 1.0, .top_p = 0.4}, falling, {}, 0},
      {"min_p", {.temperature = 1.0, .min_p = 0.7}, falling, {}, 0},
      {"top_k", {.temperature = 1.0, .top_k = 1}, logits_of({0.3F, 0.5F, 0.2F}), {}, 1},
      {"top_p_after_a_penalty",
       {.temperature = 1.0, .top_p = 0.4, .presence_penalty = 6.0},
       falling,
       {0},
       1},
  };
}

class RowsByHand : public ::testing::TestWithParam<Case> {};

TEST_P(RowsByHand, GiveTheirToken) {
  const Case& one = GetParam();
  Sampler sampler(one.options, static_cast<int>(one.logits.size()));
  for (int position = 0; position < 200; ++position) {
    std::vector<float> row = one.logits;
    ASSERT_EQ(sampler.choose(row, one.context, position), one.token);
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& test) {
  return test.param.name;
}

INSTANTIATE_TEST_SUITE_P(Penalties, RowsByHand, ::testing::ValuesIn(penalties()), name_of);
INSTANTIATE_TEST_SUITE_P(Filters, RowsByHand, ::testing::ValuesIn(filters()), name_of);

// The penalty takes the best token out; .3 and .2 are left.
TEST(DistributionsByHand, SumToOneAfterAFilter) {
  Sampler sampler({.temperature = 1.0, .top_k = 2, .presence_penalty = 60.0}, 3);
  std::vector<float> row = logits_of({0.5F, 0.3F, 0.2F});
  const std::vector<std::int32_t> context = {0};
  const Distribution chances = sampler.distribution(row, context, 1);
  ASSERT_EQ(chances.size(), 2U);
  EXPECT_EQ(chances[0].id, 1);
  EXPECT_NEAR(chances[0].probability, 0.6, 1e-6);
  EXPECT_EQ(chances[1].id, 2);
  EXPECT_NEAR(chances[1].probability, 0.4, 1e-6);
}

// p is above q for a 2, so it stays whatever is drawn. For a 4, p is 0: it never does.
TEST(DraftsByHand, StayOrGoWithCertaintyAtTheEnds) {
  const Distribution p = {{0.7, 2}, {0.3, 5}};
  const Distribution q = {{0.2, 2}, {0.8, 4}};
  for (int position = 0; position < 100; ++position) {
    const double uniform = (position + 0.5) / 100;
    const Noise noise(1, 0, position, NoiseRole::kResidual);
    EXPECT_EQ(accept_or_resample(p, q, 2, uniform, noise), 2);
    EXPECT_NE(accept_or_resample(p, q, 4, uniform, noise), 4);
  }
}

}  // namespace
}  // namespace saker::sample
