// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/filters.h"

#include "saker/base/log_prob.h"

#include "tests/sample/log_rows.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace saker::sample {
namespace {

using Ids = std::vector<std::int32_t>;

Ids kept(
    const SamplingOptions& options,
    const std::vector<float>& row,
    bool xtc = false,
    const Ids& exempt = {}
) {
  Ids ids;
  for (const Candidate& token : filter(options, row, max_logit(row), xtc, exempt)) {
    EXPECT_EQ(token.log_prob, row[static_cast<std::size_t>(token.id)]);
    ids.push_back(token.id);
  }
  return ids;
}

TEST(TopP, KeepsTheSmallestSetWithTheMassAndTies) {
  const auto row = logs({.5, .25, .15, .1});
  EXPECT_EQ(kept({.top_p = .75}, row), (Ids{0, 1}));
  EXPECT_EQ(kept({.top_p = .76}, row), (Ids{0, 1, 2}));
  EXPECT_EQ(kept({.top_p = .5}, logs({.4, .2, .2, .2})), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(kept({.top_p = 1e-9}, logs({.1, .2, .6, .1})), (Ids{2}));
  EXPECT_EQ(kept({.top_p = 0.0}, row), (Ids{0, 1, 2, 3}));
}

TEST(MinP, RemovesBelowTheShareOfTheBestButKeepsSome) {
  const auto row = logs({.1, .2, .6, .1});
  EXPECT_EQ(kept({.min_p = .3}, row), (Ids{1, 2}));
  EXPECT_EQ(kept({.min_p = 1.0}, row), (Ids{2}));
  EXPECT_EQ(kept({.min_p = 1.0, .min_tokens_to_keep = 3}, row), (Ids{0, 1, 2}));
}

TEST(TopK, TiesGoToTheLowerId) {
  EXPECT_EQ(kept({.top_k = 2}, logs({.2, .3, .2, .3})), (Ids{1, 3}));
  EXPECT_EQ(kept({.top_k = 3}, logs({.2, .3, .2, .3})), (Ids{0, 1, 3}));
  EXPECT_EQ(kept({.top_k = 9}, logs({.2, .3, .2, .3})), (Ids{0, 1, 2, 3}));
}

TEST(Xtc, RemovesAllAboveTheLeastOfTheLikely) {
  const auto row = logs({.4, .3, .2, .1});
  SamplingOptions options;
  options.xtc_probability = 1.0;
  options.xtc_threshold = 0.15;
  EXPECT_EQ(kept(options, row, true), (Ids{2, 3}));
  EXPECT_EQ(kept(options, row, true, {0}), (Ids{0, 2, 3}));
  EXPECT_EQ(kept(options, row, false), (Ids{0, 1, 2, 3}));
  options.xtc_threshold = 0.5;
  EXPECT_EQ(kept(options, row, true), (Ids{0, 1, 2, 3}));
  // Probabilities are those of what top_p left: .4 and .3 become .571 and .429.
  options.xtc_threshold = 0.42;
  options.top_p = .69;
  EXPECT_EQ(kept(options, row, true), (Ids{1}));
}

TEST(Filters, OrderIsTopPThenMinPThenXtcThenTopK) {
  const auto row = logs({.3, .25, .2, .15, .1});
  SamplingOptions options;
  options.top_p = .85;  // Leaves 0, 1, 2, 3.
  options.min_p = .6;   // Leaves 0, 1, 2.
  options.xtc_probability = 1.0;
  options.xtc_threshold = .3;  // .25 / .75 is above it, .2 / .75 is not: removes 0.
  options.top_k = 1;           // Would be 0 if it came first.
  EXPECT_EQ(kept(options, row, true), (Ids{1}));
}

TEST(Filters, MinusInfinityNeverSurvives) {
  auto row = logs({.5, .5, .5});
  row[1] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(kept({.top_k = 3}, row), (Ids{0, 2}));
  EXPECT_EQ(kept({.min_p = 1e-300}, row), (Ids{0, 2}));
  EXPECT_EQ(kept({.min_p = 0.5, .min_tokens_to_keep = 3}, row), (Ids{0, 2}));
  EXPECT_EQ(kept({.top_p = .999}, row), (Ids{0, 2}));
}

// The definitions with a full sort, for rows of any shape.
Ids slow_filter(const SamplingOptions& options, const std::vector<float>& row) {
  Ids order(row.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](std::int32_t id) { return row[static_cast<std::size_t>(id)]; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return at(a) > at(b); });
  if (options.top_p > 0.0 && options.top_p < 1.0) {
    double above = 0.0;
    double group_above = 0.0;
    Ids left;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || at(order[i]) != at(order[i - 1])) {
        group_above = above;
      }
      if (group_above < options.top_p) {
        left.push_back(order[i]);
      }
      above += static_cast<double>(static_cast<float>(std::exp(static_cast<double>(at(order[i])))));
    }
    order = left;
  }
  if (options.min_p > 0.0) {
    const float cut = at(order[0]) + static_cast<float>(std::log(options.min_p));
    Ids left;
    for (const auto id : order) {
      if (at(id) >= cut || static_cast<int>(left.size()) < options.min_tokens_to_keep) {
        left.push_back(id);
      }
    }
    order = left;
  }
  if (options.top_k > 0 && order.size() > static_cast<std::size_t>(options.top_k)) {
    order.resize(static_cast<std::size_t>(options.top_k));
  }
  std::sort(order.begin(), order.end());
  return order;
}

RC_GTEST_PROP(Filters, FastSelectionEqualsTheSortedDefinition, ()) {
  const int size = *rc::gen::inRange(1, 2000);
  // Few levels make ties, many make a smooth row; the spread goes from flat to peaked.
  const int levels = *rc::gen::element(3, 50, 100000);
  const double spread = *rc::gen::element(0.1, 3.0, 30.0);
  std::vector<float> logits;
  for (const int level : *rc::gen::container<std::vector<int>>(
           static_cast<std::size_t>(size), rc::gen::resize(1000, rc::gen::inRange(0, levels))
       )) {
    logits.push_back(static_cast<float>(spread * level / levels));
  }
  const double log_sum = log_sum_exp(logits);
  for (float& x : logits) {
    x = static_cast<float>(x - log_sum);
  }
  SamplingOptions options;
  // Odd fractions keep the two orders of additions away from a border.
  options.top_p = *rc::gen::element(1.0, 0.0317, 0.5113, 0.9071, 0.99913);
  options.min_p = *rc::gen::element(0.0, 0.0513, 0.517);
  options.min_tokens_to_keep = *rc::gen::element(1, 5);
  options.top_k = *rc::gen::element(0, 1, 40, 1500);
  RC_ASSERT(kept(options, logits) == slow_filter(options, logits));
}

}  // namespace
}  // namespace saker::sample
