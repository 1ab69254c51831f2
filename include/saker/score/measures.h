// SPDX-License-Identifier: Apache-2.0
#pragma once

// Measures of an adapter's effect, from scores of several views. Formulas: docs/scoring.md.
// Float64, nats. Plain C++; all functions are pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace saker::score {

// One value per token, or none.
using TokenLogprobs = std::vector<std::optional<double>>;

// tuned - base per token; none if either has no log-probability. Throws kInvalidArgument for
// different lengths.
TokenLogprobs token_deltas(const TokenLogprobs& base, const TokenLogprobs& tuned);

// Summary of the values that exist and are finite.
struct Summary {
  std::size_t count = 0;
  std::size_t left_out = 0;  // Values that exist and are not finite.
  double sum = 0.0;          // As for the mean: 0 without values, NaN if all were left out.
  double mean = 0.0;
};

// Sums up in order.
Summary summary(const TokenLogprobs& values);

// Fewer strengths tell nothing: a line goes through any two points.
inline constexpr std::size_t kFewestStrengths = 3;

// Growth of a divergence with the adapter's strength.
struct AblationCurve {
  double linearity = 0.0;  // R^2 of the least-squares line, in [0, 1].
  // The smallest strength up to 1 with 90 % of the divergence at 1 (or at the largest strength
  // below 1); none if that divergence is 0.
  std::optional<double> saturation;
  double overshoot = 1.0;  // Divergence at the largest strength divided by that at 1.
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

// Throws kInvalidArgument if there are no values or one is not finite.
NullStatistics null_statistics(std::span<const double> values);
// (value - mean) / max(deviation, 1e-6); none for a value that is not finite.
std::optional<double> z_score(double value, const NullStatistics& nulls);

// How an interval is drawn.
struct BootstrapOptions {
  int resamples = 1000;
  double confidence = 0.95;  // Mass of the interval.
  std::uint64_t seed = 0;
};

// Bounds of a mean.
struct Interval {
  double low = 0.0;
  double high = 0.0;
};

// The percentile interval of the mean. A seed gives the same interval on every machine. Throws
// kInvalidArgument if there are no values, one is not finite, or options are out of range.
Interval bootstrap_interval(std::span<const double> values, const BootstrapOptions& options);

}  // namespace saker::score
