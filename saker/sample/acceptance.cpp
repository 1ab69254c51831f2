// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/acceptance.h"

#include "saker/base/portable_math.h"

#include <algorithm>
#include <limits>

namespace saker::sample {

namespace {

double probability_of(const Distribution& distribution, std::int32_t id) {
  const auto found = std::ranges::lower_bound(distribution, id, {}, &Outcome::id);
  return found != distribution.end() && found->id == id ? found->probability : 0.0;
}

// max(p - q, 0), not normalised.
Distribution residual(const Distribution& p, const Distribution& q) {
  Distribution left;
  auto other = q.begin();
  for (const Outcome& outcome : p) {
    while (other != q.end() && other->id < outcome.id) {
      ++other;
    }
    const bool shared = other != q.end() && other->id == outcome.id;
    const double above = outcome.probability - (shared ? other->probability : 0.0);
    if (above > std::numeric_limits<double>::min()) {
      left.push_back({above, outcome.id});
    }
  }
  return left;
}

}  // namespace

std::int32_t draw(std::span<const Outcome> outcomes, const Noise& noise) {
  double best_score = -std::numeric_limits<double>::infinity();
  std::int32_t best = outcomes.front().id;
  for (const Outcome& outcome : outcomes) {
    const double score =
        portable_log(outcome.probability) + Noise::to_gumbel(noise.bits(outcome.id));
    if (score > best_score) {
      best_score = score;
      best = outcome.id;
    }
  }
  return best;
}

std::int32_t accept_or_resample(
    const Distribution& p,
    const Distribution& q,
    std::int32_t draft,
    double uniform,
    const Noise& noise
) {
  if (uniform * probability_of(q, draft) < probability_of(p, draft)) {
    return draft;
  }
  const Distribution left = residual(p, q);
  return draw(left.empty() ? p : left, noise);
}

}  // namespace saker::sample
