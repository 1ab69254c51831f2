// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far two next-token distributions are from each other, from their best candidates and tails.
// Formulas: docs/scoring.md. Float64, nats. Plain C++; all functions are pure.

#include "saker/score/next_distribution.h"

#include <span>
#include <vector>

namespace saker::score {

// Probabilities of both distributions over the union of their candidates, in order of id, each
// summing to 1.
struct AlignedProbabilities {
  std::vector<double> base;
  std::vector<double> tuned;
};

// A candidate that one side lacks gets an equal share of that side's tail there. Throws
// kInvalidArgument, naming the side, for a distribution without candidates, with non-finite
// log-probabilities, or with at least two candidates that are all equal to 1e-9, which only a
// broken model gives.
AlignedProbabilities align(const NextDistribution& base, const NextDistribution& tuned);

// KL(p || q) = sum of p log(p / q); zero probabilities of q count as 1e-12. Throws kInvalidArgument
// for different lengths and non-finite numbers.
double kl_divergence(std::span<const double> p, std::span<const double> q);
// Jensen-Shannon: the mean of KL(p || m) and KL(q || m), m = (p + q) / 2; in [0, ln 2]. Throws as
// `kl_divergence`.
double js_divergence(std::span<const double> p, std::span<const double> q);

// The two of aligned distributions; KL is that of tuned from base.
struct Divergence {
  double kl = 0.0;
  double js = 0.0;
};

Divergence divergence(const NextDistribution& base, const NextDistribution& tuned);

}  // namespace saker::score
