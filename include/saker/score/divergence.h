// SPDX-License-Identifier: Apache-2.0
#pragma once

// The distance of two next-token distributions, from their best candidates and tails. Formulas:
// docs/scoring.md. Float64, nats. Plain C++; all functions are pure.

#include "saker/score/next_distribution.h"

#include <span>
#include <vector>

namespace saker::score {

// Probabilities of both distributions over the union of their candidates, by ascending id; each
// sums to 1.
struct AlignedProbabilities {
  std::vector<double> base;
  std::vector<double> tuned;
};

// A candidate that one side lacks gets an equal share of that side's tail. Throws kInvalidArgument,
// naming the side, for a distribution without candidates or with non-finite log-probabilities. Also
// throws for two or more candidates that all agree to 1e-9: only a broken model gives these.
AlignedProbabilities align(const NextDistribution& base, const NextDistribution& tuned);

// KL(p || q) = sum of p log(p / q); zero probabilities of q count as 1e-12. Throws kInvalidArgument
// for different lengths and non-finite numbers.
double kl_divergence(std::span<const double> p, std::span<const double> q);
// Jensen-Shannon: the mean of KL(p || m) and KL(q || m), m = (p + q) / 2; in [0, ln 2]. Throws as
// `kl_divergence`.
double js_divergence(std::span<const double> p, std::span<const double> q);

// Divergences of two aligned distributions; KL is tuned from base.
struct Divergence {
  double kl = 0.0;
  double js = 0.0;
};

// Aligns both and measures them. Throws as `align`.
Divergence divergence(const NextDistribution& base, const NextDistribution& tuned);

}  // namespace saker::score
