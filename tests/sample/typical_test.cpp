// SPDX-License-Identifier: Apache-2.0
// Expected sets are those of llama.cpp's samplers (llama-cpp-python 0.3.36) on the same rows, but
// for ties, of which it keeps any.
#include "saker/sample/typical.h"

#include "saker/base/log_prob.h"
#include "saker/sample/noise.h"

#include "tests/sample/log_rows.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace saker::sample {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr float kRemoved = -std::numeric_limits<float>::infinity();

Ids kept(const SamplingOptions& options, std::vector<float> row) {
  const std::vector<float> before = row;
  EXPECT_TRUE(row_filters_needed(options));
  const float max = filter_row(options, row, max_logit(row));
  EXPECT_EQ(max, max_logit(row));
  Ids ids;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] != kRemoved) {
      EXPECT_EQ(row[i], before[i]);
      ids.push_back(static_cast<std::int32_t>(i));
    }
  }
  return ids;
}

const std::vector<float> flat_row = logs({.3, .25, .2, .15, .06, .04});
const std::vector<float> peaked_row = logs({.9, .04, .03, .02, .01});

TEST(Typical, KeepsWhatIsNearTheEntropy) {
  EXPECT_EQ(kept({.typical_p = .19}, flat_row), (Ids{2}));
  EXPECT_EQ(kept({.typical_p = .3}, flat_row), (Ids{1, 2}));
  EXPECT_EQ(kept({.typical_p = .5}, flat_row), (Ids{1, 2, 3}));
  EXPECT_EQ(kept({.typical_p = .7}, flat_row), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(kept({.typical_p = .9}, flat_row), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(kept({.typical_p = .97}, flat_row), (Ids{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(kept({.typical_p = .5}, peaked_row), (Ids{0}));
  EXPECT_EQ(kept({.typical_p = .92}, peaked_row), (Ids{0, 1}));
  EXPECT_EQ(kept({.typical_p = .95}, peaked_row), (Ids{0, 1, 2}));
}

TEST(Typical, IsOffAtItsEnds) {
  EXPECT_FALSE(row_filters_needed({.typical_p = 0.0}));
  EXPECT_FALSE(row_filters_needed({.typical_p = 1.0}));
  EXPECT_FALSE(row_filters_needed({.top_n_sigma = 0.0}));
}

TEST(TopNSigma, KeepsLogitsNearTheBest) {
  EXPECT_EQ(kept({.top_n_sigma = .2}, flat_row), (Ids{0}));
  EXPECT_EQ(kept({.top_n_sigma = .5}, flat_row), (Ids{0, 1}));
  EXPECT_EQ(kept({.top_n_sigma = 1.0}, flat_row), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(kept({.top_n_sigma = 2.0}, flat_row), (Ids{0, 1, 2, 3}));
}

TEST(TopNSigma, RemovedLogitsDoNotCount) {
  std::vector<float> row = flat_row;
  row.insert(row.begin() + 1, kRemoved);
  EXPECT_EQ(kept({.top_n_sigma = .5}, row), (Ids{0, 2}));
  EXPECT_EQ(kept({.typical_p = .5}, row), (Ids{2, 3, 4}));
}

// The entropy is that of what top_n_sigma left.
TEST(RowFilters, TopNSigmaComesFirst) {
  EXPECT_EQ(kept({.top_n_sigma = 1.0, .typical_p = .3}, flat_row), (Ids{0, 1}));
}

// The definition, with a full sort.
Ids slow_typical(const std::vector<float>& row, double p) {
  double entropy = 0.0;
  for (const float x : row) {
    entropy -= std::exp(static_cast<double>(x)) * static_cast<double>(x);
  }
  const auto distance = [&](std::int32_t id) {
    return std::abs(row[static_cast<std::size_t>(id)] + static_cast<float>(entropy));
  };
  Ids order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return distance(a) < distance(b); });
  double mass = 0.0;
  std::size_t count = 0;
  while (count < order.size() && mass < p) {
    mass += std::exp(static_cast<double>(row[static_cast<std::size_t>(order[count++])]));
  }
  order.resize(count);
  std::ranges::sort(order);
  return order;
}

TEST(Typical, LongRows) {
  for (int round = 0; round < 60; ++round) {
    const Noise shape(5, 0, round, NoiseRole::kToken);
    std::vector<float> row(1500);
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<float>(12.0 * Noise::to_uniform(shape.bits(static_cast<int>(i))));
    }
    const double log_sum = log_sum_exp(row);
    for (float& x : row) {
      x = static_cast<float>(static_cast<double>(x) - log_sum);
    }
    const double p = 0.013 * (round + 1) + 0.1;
    EXPECT_EQ(kept({.typical_p = p}, row), slow_typical(row, p)) << round;
  }
}

}  // namespace
}  // namespace saker::sample
