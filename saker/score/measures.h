// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers that say what an adapter does, from scores of several views. Formulas: docs/scoring.md.
// Float64, nats. Plain C++; all functions are pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace saker::score {

using TokenLogprobs = std::vector<std::optional<double>>;

// tuned - base per token; none where either has no log-probability. Throws kInvalidArgument for
// different lengths.
TokenLogprobs token_deltas(const TokenLogprobs& base, const TokenLogprobs& tuned);

// Of the values that are there and finite.
struct Summary {
  std::size_t count = 0;
  std::size_t left_out = 0;  // Values that are there and not finite.
  double sum = 0.0;          // As the mean: 0 without values, NaN when all were left out.
  double mean = 0.0;
};

Summary summary(const TokenLogprobs& values);

// A line goes through any two points.
inline constexpr std::size_t kFewestStrengths = 3;

// How a divergence grows with the adapter's strength.
struct AblationCurve {
  double linearity = 0.0;  // R^2 of the least-squares line, in [0, 1].
  // The smallest strength up to 1 that has 90 % of the divergence at 1 (or at the largest strength
  // below it); none where that divergence is 0.
  std::optional<double> saturation;
  double overshoot = 1.0;  // Divergence at the largest strength over that at 1.
};

// Throws kInvalidArgument for different lengths, fewer than three different strengths and
// non-finite numbers.
AblationCurve ablation_curve(
    std::span<const double> strengths, std::span<const double> divergences
);

// Mean and standard deviation (of a population) over null adapters.
struct NullStatistics {
  double mean = 0.0;
  double deviation = 0.0;
  std::size_t count = 0;
};

// Throws kInvalidArgument without values and for non-finite ones.
NullStatistics null_statistics(std::span<const double> values);
// (value - mean) / max(deviation, 1e-6); none for a value that is not finite.
std::optional<double> z_score(double value, const NullStatistics& nulls);
// 1 / (1 + e^(-z / 3)): 0.5 at the nulls' mean.
double score_from_z(double z);

struct BootstrapOptions {
  int resamples = 1000;
  double confidence = 0.95;
  std::uint64_t seed = 0;
};

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

// The percentile interval of the mean. The same seed gives the same interval on every machine.
// Throws kInvalidArgument without values, for non-finite ones and for options out of range.
Interval bootstrap_interval(std::span<const double> values, const BootstrapOptions& options);

}  // namespace saker::score
