// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/sampler.h"

#include "saker/base/error.h"
#include "saker/base/log_prob.h"
#include "saker/sample/noise.h"

#include "tests/support/chi_square.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace saker::sample {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::int32_t choose(const SamplingOptions& options, std::vector<float> logits, int position = 0) {
  Sampler sampler(options, static_cast<int>(logits.size()));
  return sampler.choose(logits, {}, position);
}

TEST(Sampler, GreedyTakesTheBestAndTheLowerIdOfTies) {
  EXPECT_EQ(choose({}, {1, 3, 2, 3}), 1);
  EXPECT_EQ(choose({.top_k = 1, .xtc_probability = 1.0}, {1, 3, 2, 3}), 1);
  std::vector<float> row(1000, -2.0F);
  row[999] = -1.0F;
  EXPECT_EQ(choose({}, row), 999);
}

TEST(Sampler, RowsThatAreNotFinite) {
  for (const double temperature : {0.0, 1.0}) {
    const SamplingOptions options{.temperature = temperature, .top_k = 2};
    EXPECT_EQ(choose(options, {kNaN, -kInfinity, 0.0F, kNaN}), 2);
    EXPECT_EQ(choose(options, {0.0F, kInfinity, 5.0F, kInfinity}), 1);
    EXPECT_THROW(choose(options, {kNaN, kNaN}), Error);
    EXPECT_THROW(choose(options, {-kInfinity, kNaN}), Error);
  }
  EXPECT_EQ(choose({.temperature = 1.0}, {kNaN, -kInfinity, 0.0F, kNaN}), 2);
}

TEST(Sampler, SmallAndLargeTemperatures) {
  EXPECT_EQ(choose({.temperature = 1e-300}, {1.0F, 1.001F, 0.0F}), 1);
  EXPECT_EQ(choose({.temperature = 1e-5}, {1.0F, 1.01F, 0.0F}), 1);
  EXPECT_NO_THROW(choose({.temperature = 100.0}, {1.0F, 1.001F, 0.0F}));
}

// The race skips noise that cannot win; the definition doesn't.
TEST(Sampler, IsTheArgmaxOfLogProbabilityAndNoise) {
  for (int position = 0; position < 300; ++position) {
    const Noise shape(1, 0, position, NoiseRole::kToken);
    std::vector<float> logits(500 + position);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      logits[i] = static_cast<float>(10.0 * Noise::to_uniform(shape.bits(static_cast<int>(i))));
    }
    const double temperature = 0.3 + 0.01 * position;
    const double log_sum = log_sum_exp(logits);
    const Noise noise(9, 3, position, NoiseRole::kToken);
    std::int32_t expected = -1;
    double best = -1e300;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const auto id = static_cast<std::int32_t>(i);
      const auto log_prob = static_cast<float>(logits[i] - log_sum);
      const double score = log_prob * (1.0 / temperature) + Noise::to_gumbel(noise.bits(id));
      if (score > best) {
        best = score;
        expected = id;
      }
    }
    Sampler sampler({.temperature = temperature, .seed = 9}, 1000, {}, 3);
    EXPECT_EQ(sampler.choose(logits, {}, position), expected);
  }
}

// Chi-square of the tokens chosen at many positions against the exact distribution.
void expect_distribution(
    const SamplingOptions& options,
    const std::vector<float>& logits,
    const std::vector<double>& probabilities
) {
  constexpr int kPositions = 40000;
  std::vector<int> counts(logits.size());
  Sampler sampler(options, static_cast<int>(logits.size()));
  for (int position = 0; position < kPositions; ++position) {
    std::vector<float> row = logits;
    ++counts[static_cast<std::size_t>(sampler.choose(row, {}, position))];
  }
  EXPECT_GT(saker::testing::chi_square_p(counts, probabilities), 1e-3);
}

std::vector<double> softmax(const std::vector<float>& logits, double temperature) {
  std::vector<double> result;
  double sum = 0.0;
  for (const float x : logits) {
    result.push_back(std::exp(x / temperature));
    sum += result.back();
  }
  for (double& p : result) {
    p /= sum;
  }
  return result;
}

TEST(Sampler, FollowsTheDistribution) {
  std::vector<float> logits(64);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(i % 13) * 0.25F - (i > 40 ? kInfinity : 0.0F);
  }
  for (const double temperature : {0.5, 1.0, 2.0}) {
    for (const std::uint64_t seed : {0U, 1U, 12345U}) {
      expect_distribution(
          {.temperature = temperature, .seed = seed}, logits, softmax(logits, temperature)
      );
    }
  }
}

TEST(Sampler, FiltersRenormalise) {
  const std::vector<float> logits = {0.0F, 1.0F, 2.0F, 3.0F};
  const double total = std::exp(2.0 / 0.8) + std::exp(3.0 / 0.8);
  expect_distribution(
      {.temperature = 0.8, .top_k = 2, .seed = 4},
      logits,
      {0.0, 0.0, std::exp(2.0 / 0.8) / total, std::exp(3.0 / 0.8) / total}
  );
}

// The filter removes id 1 in half of the draws: p(0) = .5 * 1 + .5 * .25.
TEST(Sampler, XtcDrawsByPosition) {
  const std::vector<float> logits = {std::log(0.25F), std::log(0.75F)};
  SamplingOptions options{.temperature = 1.0, .seed = 77};
  options.xtc_probability = 0.5;
  options.xtc_threshold = 0.2;
  expect_distribution(options, logits, {0.625, 0.375});
}

TEST(Sampler, DependsOnSeedChoiceAndPositionOnly) {
  const std::vector<float> logits(1000, 0.0F);
  const auto pick = [&](std::uint64_t seed, std::uint32_t choice, std::int64_t position) {
    Sampler sampler({.temperature = 1.0, .seed = seed}, 1000, {}, choice);
    std::vector<float> row = logits;
    sampler.choose(row, {}, position + 1);
    row = logits;
    return sampler.choose(row, {}, position);
  };
  EXPECT_EQ(pick(1, 0, 5), pick(1, 0, 5));
  EXPECT_NE(pick(1, 0, 5), pick(2, 0, 5));
  EXPECT_NE(pick(1, 0, 5), pick(1, 1, 5));
  EXPECT_NE(pick(1, 0, 5), pick(1, 0, 6));
}

TEST(Sampler, PenaltiesComeBeforeTheChoice) {
  Sampler sampler({.presence_penalty = 2.0}, 3);
  std::vector<float> row = {1.0F, 2.0F, 0.5F};
  const std::vector<std::int32_t> context = {1};
  EXPECT_EQ(sampler.choose(row, context, 1), 0);
}

}  // namespace
}  // namespace saker::sample
