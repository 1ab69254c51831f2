// SPDX-License-Identifier: Apache-2.0
#include "saker/score/divergence.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numbers>
#include <numeric>
#include <string_view>

namespace saker::score {
namespace {

constexpr double kFloor = 1e-12;
constexpr double kUniformSpread = 1e-9;

void check(const NextDistribution& next, std::string_view side) {
  require(
      !next.logprobs.empty() && next.logprobs.size() == next.token_ids.size(),
      ErrorCode::kInvalidArgument,
      "[divergence] {}: got {} candidates with {} log-probabilities, expected at least one of each",
      side,
      next.token_ids.size(),
      next.logprobs.size()
  );
  require(
      std::ranges::all_of(next.logprobs, [](double x) { return std::isfinite(x); }),
      ErrorCode::kInvalidArgument,
      "[divergence] {}: log-probabilities are not all finite",
      side
  );
  const auto [low, high] = std::ranges::minmax(next.logprobs);
  require(
      next.logprobs.size() < 2 || high - low >= kUniformSpread,
      ErrorCode::kInvalidArgument,
      "[divergence] {}: all {} candidates are equally probable, expected a distribution of a "
      "working model",
      side,
      next.logprobs.size()
  );
}

using Union = std::map<std::int32_t, std::size_t>;  // Id to its index.

std::vector<double> over_union(const NextDistribution& next, const Union& ids) {
  const std::size_t missing = ids.size() - next.token_ids.size();
  const double share = missing > 0 ? next.tail_mass() / static_cast<double>(missing) : 0.0;
  std::vector<double> result(ids.size(), share);
  for (std::size_t i = 0; i < next.token_ids.size(); ++i) {
    result[ids.at(next.token_ids[i])] = std::exp(next.logprobs[i]);
  }
  const double total = std::accumulate(result.begin(), result.end(), 0.0);
  require(
      std::isfinite(total) && total > 0.0,
      ErrorCode::kInvalidArgument,
      "[divergence] probabilities sum to {}",
      total
  );
  for (double& p : result) {
    p /= total;
  }
  return result;
}

}  // namespace

AlignedProbabilities align(const NextDistribution& base, const NextDistribution& tuned) {
  check(base, "base");
  check(tuned, "tuned");
  Union ids;
  for (const auto* side : {&base, &tuned}) {
    for (const std::int32_t id : side->token_ids) {
      ids.emplace(id, 0);
    }
  }
  std::size_t place = 0;
  for (auto& [id, index] : ids) {
    index = place++;
  }
  return {over_union(base, ids), over_union(tuned, ids)};
}

double kl_divergence(std::span<const double> p, std::span<const double> q) {
  require(
      p.size() == q.size(),
      ErrorCode::kInvalidArgument,
      "[kl] got {} and {} probabilities",
      p.size(),
      q.size()
  );
  double sum = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    require(
        std::isfinite(p[i]) && std::isfinite(q[i]),
        ErrorCode::kInvalidArgument,
        "[kl] probability {} is not finite",
        i
    );
    if (p[i] > 0.0) {
      sum += p[i] * (std::log(p[i]) - std::log(q[i] > 0.0 ? q[i] : kFloor));
    }
  }
  return sum;
}

double js_divergence(std::span<const double> p, std::span<const double> q) {
  require(
      p.size() == q.size(),
      ErrorCode::kInvalidArgument,
      "[js] got {} and {} probabilities",
      p.size(),
      q.size()
  );
  std::vector<double> middle(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    middle[i] = 0.5 * (p[i] + q[i]);
  }
  const double js = 0.5 * kl_divergence(p, middle) + 0.5 * kl_divergence(q, middle);
  return std::clamp(js, 0.0, std::numbers::ln2);
}

Divergence divergence(const NextDistribution& base, const NextDistribution& tuned) {
  const AlignedProbabilities aligned = align(base, tuned);
  return {
      .kl = kl_divergence(aligned.tuned, aligned.base),
      .js = js_divergence(aligned.base, aligned.tuned),
  };
}

}  // namespace saker::score
