// SPDX-License-Identifier: Apache-2.0
// Tokens that come out of drafts have the target's distribution, by a million draws each.
#include "saker/sample/acceptance.h"

#include "saker/sample/sampler.h"

#include "tests/support/chi_square.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace saker::sample {
namespace {

using saker::testing::chi_square_p;

constexpr int kDraws = 1'000'000;
constexpr double kUnlikely = 1e-3;

const std::vector<float> target_row = {1.0F, 0.2F, -0.5F, 2.0F, -3.0F, 0.9F, 1.4F, -1.0F};
const std::vector<float> draft_row = {0.5F, 1.2F, -0.5F, 1.0F, -1.0F, 0.9F, 0.4F, 2.0F};
const SamplingOptions sampling = {.temperature = 0.9, .top_p = 0.97, .seed = 5};

Distribution chances(Sampler& sampler, std::vector<float> logits) {
  return sampler.distribution(logits, {}, 0);
}

// The two models; their distributions are the same at all positions.
struct Pair {
  Sampler target{sampling, static_cast<int>(target_row.size())};
  Sampler draft{sampling, static_cast<int>(draft_row.size())};
  Distribution p = chances(target, target_row);
  Distribution q = chances(draft, draft_row);
};

// The token that comes out where `draft` was drafted.
using Rule = std::function<std::int32_t(Pair& pair, std::int32_t draft, int position)>;

struct Result {
  double p = 0.0;         // See chi_square_p.
  double accepted = 0.0;  // The share of drafts that came out.
};

Result run(const Rule& rule) {
  Pair pair;
  std::vector<double> probabilities(target_row.size(), 0.0);
  for (const Outcome& outcome : pair.p) {
    probabilities[static_cast<std::size_t>(outcome.id)] = outcome.probability;
  }
  std::vector<int> counts(target_row.size(), 0);
  int accepted = 0;
  for (int position = 0; position < kDraws; ++position) {
    std::vector<float> row = draft_row;
    const std::int32_t draft = pair.draft.choose(row, {}, position);
    const std::int32_t token = rule(pair, draft, position);
    ++counts[static_cast<std::size_t>(token)];
    accepted += token == draft ? 1 : 0;
  }
  return {chi_square_p(counts, probabilities), static_cast<double>(accepted) / kDraws};
}

std::int32_t coupled(Pair& pair, std::int32_t /*draft*/, int position) {
  std::vector<float> row = target_row;
  return pair.target.choose(row, {}, position);
}

std::int32_t rejection(Pair& pair, std::int32_t draft, int position) {
  return pair.target.accept_or_resample(pair.p, pair.q, draft, position);
}

// Resamples from all of p.
std::int32_t without_residual(Pair& pair, std::int32_t draft, int position) {
  const Noise noise(sampling.seed, 0, position, NoiseRole::kResidual);
  const std::int32_t right = pair.target.accept_or_resample(pair.p, pair.q, draft, position);
  return right == draft ? draft : draw(pair.p, noise);
}

// Accepts what the target finds at least half as likely.
std::int32_t without_chance(Pair& pair, std::int32_t draft, int position) {
  const Noise noise(sampling.seed, 0, position, NoiseRole::kResidual);
  return accept_or_resample(pair.p, pair.q, draft, 0.5, noise);
}

TEST(Acceptance, TheTargetsDistributionComesOut) {
  const Result by_noise = run(coupled);
  const Result by_rejection = run(rejection);
  EXPECT_GT(by_noise.p, kUnlikely);
  EXPECT_GT(by_rejection.p, kUnlikely);
  RecordProperty("accepted_coupled", std::to_string(by_noise.accepted));
  RecordProperty("accepted_rejection", std::to_string(by_rejection.accepted));
  // As many as any rule can accept: the mass that p and q share.
  const Pair pair;
  double shared = 0.0;
  for (const Outcome& outcome : pair.q) {
    const auto same = std::ranges::find(pair.p, outcome.id, &Outcome::id);
    shared += same == pair.p.end() ? 0.0 : std::min(outcome.probability, same->probability);
  }
  EXPECT_NEAR(by_rejection.accepted, shared, 0.003);
  EXPECT_LE(by_noise.accepted, shared + 0.003);
  EXPECT_GE(by_noise.accepted, shared / (2.0 - shared) - 0.003);
}

TEST(Acceptance, WrongRulesShow) {
  EXPECT_LT(run(without_residual).p, kUnlikely);
  EXPECT_LT(run(without_chance).p, kUnlikely);
}

TEST(Acceptance, EqualDistributionsAcceptEverything) {
  const Distribution p = {{0.25, 1}, {0.75, 4}};
  for (int position = 0; position < 1000; ++position) {
    const Noise noise(1, 0, position, NoiseRole::kResidual);
    const double uniform = Noise::to_uniform(noise.bits(99));
    EXPECT_EQ(accept_or_resample(p, p, 1, uniform, noise), 1);
    EXPECT_EQ(accept_or_resample(p, p, 4, uniform, noise), 4);
  }
}

// The residual of {2: .7, 5: .3} and {2: .2, 4: .8} is {2: .625, 5: .375}.
TEST(Acceptance, TheResidualIsWhatTheTargetHasAbove) {
  const Distribution p = {{0.7, 2}, {0.3, 5}};
  const Distribution q = {{0.2, 2}, {0.8, 4}};
  int twos = 0;
  constexpr int kRounds = 100'000;
  for (int position = 0; position < kRounds; ++position) {
    const Noise noise(1, 0, position, NoiseRole::kResidual);
    const std::int32_t token = accept_or_resample(p, q, 4, 0.5, noise);
    ASSERT_TRUE(token == 2 || token == 5);
    twos += token == 2 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(twos) / kRounds, 0.625, 0.006);
}

TEST(Acceptance, CertainDraftsStayWithTheTargetsProbability) {
  const Distribution p = {{0.7, 2}, {0.3, 5}};
  const Noise noise(1, 0, 0, NoiseRole::kResidual);
  EXPECT_EQ(accept_or_resample(p, {{1.0, 2}}, 2, 0.69, noise), 2);
  EXPECT_EQ(accept_or_resample(p, {{1.0, 2}}, 2, 0.71, noise), 5);
  EXPECT_EQ(accept_or_resample({{1.0, 3}}, {{1.0, 2}}, 2, 0.01, noise), 3);
}

TEST(Acceptance, ADistributionIsWhatIsChosenFrom) {
  const std::vector<float> logits = {1.0F, 0.2F, -0.5F, 2.0F, -3.0F, 0.9F, 1.4F, -1.0F};
  const std::vector<SamplingOptions> all = {
      {.temperature = 0.7},
      {.temperature = 1.3, .top_p = 0.8, .min_p = 0.1},
      {.temperature = 1.0, .top_k = 3, .typical_p = 0.9, .dynatemp_range = 0.5},
      {.temperature = 0.0},
  };
  for (const SamplingOptions& options : all) {
    Sampler sampler(options, static_cast<int>(logits.size()));
    std::vector<double> probabilities(logits.size(), 0.0);
    double sum = 0.0;
    for (const Outcome& outcome : chances(sampler, logits)) {
      probabilities[static_cast<std::size_t>(outcome.id)] = outcome.probability;
      sum += outcome.probability;
    }
    EXPECT_NEAR(sum, 1.0, 1e-12);
    std::vector<int> counts(logits.size(), 0);
    for (int position = 0; position < 100'000; ++position) {
      std::vector<float> row = logits;
      ++counts[static_cast<std::size_t>(sampler.choose(row, {}, position))];
    }
    if (options.temperature > 0.0) {
      EXPECT_GT(chi_square_p(counts, probabilities), kUnlikely);
    } else {
      EXPECT_EQ(counts[3], 100'000);
    }
  }
}

}  // namespace
}  // namespace saker::sample
