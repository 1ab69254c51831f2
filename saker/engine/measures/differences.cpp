// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/measures/differences.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace saker::engine {
namespace {

constexpr std::size_t kFewestNulls = 2;

std::vector<double> finite_values(const score::TokenLogprobs& deltas) {
  std::vector<double> values;
  for (const auto& delta : deltas) {
    if (delta && std::isfinite(*delta)) {
      values.push_back(*delta);
    }
  }
  return values;
}

score::TokenLogprobs sizes(score::TokenLogprobs deltas) {
  for (auto& delta : deltas) {
    if (delta) {
      delta = std::abs(*delta);
    }
  }
  return deltas;
}

ViewDifference difference(const ViewScores& reference, const ViewScores& scores) {
  ViewDifference result{.view = scores.view};
  result.deltas = score::token_deltas(reference.logprobs, scores.logprobs);
  result.total = score::summary(result.deltas);
  result.mean_change = score::summary(sizes(result.deltas)).mean;
  const std::vector<double> values = finite_values(result.deltas);
  result.mean_interval = values.empty() ? score::Interval{result.total.mean, result.total.mean}
                                        : score::bootstrap_interval(values, {});
  if (reference.next && scores.next) {
    try {
      result.next = score::divergence(*reference.next, *scores.next);
    } catch (const Error&) {
      result.next.reset();  // The model is broken.
    }
  }
  return result;
}

void add_z_scores(Differences& all, std::span<const View> views) {
  std::vector<double> nulls;
  for (std::size_t i = 1; i < views.size(); ++i) {
    if (views[i].null && std::isfinite(all.views[i - 1].mean_change)) {
      nulls.push_back(all.views[i - 1].mean_change);
    }
  }
  if (nulls.size() < kFewestNulls) {
    return;
  }
  const score::NullStatistics statistics = score::null_statistics(nulls);
  for (std::size_t i = 1; i < views.size(); ++i) {
    if (!views[i].null) {
      all.views[i - 1].z = score::z_score(all.views[i - 1].mean_change, statistics);
    }
  }
}

void add_ablation(Differences& all, std::span<const View> views) {
  if (!views.front().adapter.empty()) {
    return;  // The divergences are not from the base.
  }
  std::vector<double> strengths{0.0};
  std::vector<double> divergences{0.0};
  std::filesystem::path adapter;
  for (std::size_t i = 1; i < views.size(); ++i) {
    if (views[i].adapter.empty() || views[i].null || !all.views[i - 1].next) {
      continue;
    }
    adapter = adapter.empty() ? views[i].adapter : adapter;
    // "ft" and "1" are the same point.
    const bool is_new = std::ranges::find(strengths, views[i].strength) == strengths.end();
    if (views[i].adapter == adapter && is_new) {
      strengths.push_back(views[i].strength);
      divergences.push_back(all.views[i - 1].next->js);
    }
  }
  if (strengths.size() >= score::kFewestStrengths) {
    all.ablation = score::ablation_curve(strengths, divergences);
    for (std::size_t i = 0; i < strengths.size(); ++i) {
      all.points.push_back({strengths[i], divergences[i]});
    }
    std::ranges::sort(all.points, {}, &AblationPoint::strength);
  }
}

}  // namespace

Differences differences(const ScoreResult& result, std::span<const View> views) {
  require(
      views.size() >= 2 && views.size() == result.views.size(),
      ErrorCode::kInvalidArgument,
      "differences need two views or more, got {}",
      result.views.size()
  );
  Differences all;
  all.reference = result.views.front().view;
  all.views.reserve(result.views.size() - 1);
  for (std::size_t i = 1; i < result.views.size(); ++i) {
    all.views.push_back(difference(result.views.front(), result.views[i]));
  }
  add_z_scores(all, views);
  add_ablation(all, views);
  return all;
}

}  // namespace saker::engine
