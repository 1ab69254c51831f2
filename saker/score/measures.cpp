// SPDX-License-Identifier: Apache-2.0
#include "saker/score/measures.h"

#include "saker/base/error.h"
#include "saker/sample/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>

namespace saker::score {
namespace {

constexpr double kSaturated = 0.9;
constexpr double kSameStrength = 1e-6;
constexpr double kSmallestDeviation = 1e-6;
constexpr int kMaxResamples = 1'000'000;

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void check_values(std::span<const double> values, std::string_view what) {
  require(!values.empty(), ErrorCode::kInvalidArgument, "[{}] got no values", what);
  require(
      std::ranges::all_of(values, [](double x) { return std::isfinite(x); }),
      ErrorCode::kInvalidArgument,
      "[{}] values are not all finite",
      what
  );
}

// REQUIRES: not all x are equal.
double r_squared(std::span<const double> x, std::span<const double> y) {
  const double x_mean = mean(x);
  const double y_mean = mean(y);
  double xx = 0.0;
  double xy = 0.0;
  double yy = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - x_mean) * (x[i] - x_mean);
    xy += (x[i] - x_mean) * (y[i] - y_mean);
    yy += (y[i] - y_mean) * (y[i] - y_mean);
  }
  if (yy == 0.0) {
    return 1.0;
  }
  const double slope = xy / xx;
  double residual = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = (y[i] - y_mean) - slope * (x[i] - x_mean);
    residual += error * error;
  }
  return std::max(0.0, 1.0 - residual / yy);
}

// Index of strength 1; none if it is missing.
std::optional<std::size_t> place_of_one(std::span<const double> strengths) {
  const auto found =
      std::ranges::find_if(strengths, [](double x) { return std::abs(x - 1.0) <= kSameStrength; });
  if (found == strengths.end()) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(found - strengths.begin());
}

// Index of the largest strength up to 1.
std::optional<std::size_t> place_up_to_one(std::span<const double> strengths) {
  std::optional<std::size_t> best = place_of_one(strengths);
  if (best) {
    return best;
  }
  for (std::size_t i = 0; i < strengths.size(); ++i) {
    if (strengths[i] <= 1.0 && (!best || strengths[i] > strengths[*best])) {
      best = i;
    }
  }
  return best;
}

std::optional<double> saturation(
    std::span<const double> strengths, std::span<const double> divergences
) {
  const auto full = place_up_to_one(strengths);
  if (!full || divergences[*full] <= 0.0) {
    return std::nullopt;
  }
  const double wanted = kSaturated * divergences[*full];
  std::optional<double> smallest;
  for (std::size_t i = 0; i < strengths.size(); ++i) {
    if (strengths[i] <= strengths[*full] && divergences[i] >= wanted) {
      smallest = std::min(smallest.value_or(strengths[i]), strengths[i]);
    }
  }
  return smallest;
}

double overshoot(std::span<const double> strengths, std::span<const double> divergences) {
  const auto one = place_of_one(strengths);
  const auto most = static_cast<std::size_t>(
      std::max_element(strengths.begin(), strengths.end()) - strengths.begin()
  );
  if (!one || most == *one || divergences[*one] <= 0.0) {
    return 1.0;
  }
  return divergences[most] / divergences[*one];
}

// Linear interpolation. REQUIRES: sorted, not empty, share in [0, 1].
double quantile(std::span<const double> sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

TokenLogprobs token_deltas(const TokenLogprobs& base, const TokenLogprobs& tuned) {
  require(
      base.size() == tuned.size(),
      ErrorCode::kInvalidArgument,
      "[token_deltas] got {} and {} tokens",
      base.size(),
      tuned.size()
  );
  TokenLogprobs result(base.size());
  for (std::size_t i = 0; i < base.size(); ++i) {
    if (base[i] && tuned[i]) {
      result[i] = *tuned[i] - *base[i];
    }
  }
  return result;
}

Summary summary(const TokenLogprobs& values) {
  Summary result;
  for (const auto& value : values) {
    if (value && std::isfinite(*value)) {
      ++result.count;
      result.sum += *value;
    } else if (value) {
      ++result.left_out;
    }
  }
  if (result.count > 0) {
    result.mean = result.sum / static_cast<double>(result.count);
  } else if (result.left_out > 0) {
    result.sum = result.mean = std::numeric_limits<double>::quiet_NaN();
  }
  return result;
}

AblationCurve ablation_curve(
    std::span<const double> strengths, std::span<const double> divergences
) {
  require(
      strengths.size() == divergences.size(),
      ErrorCode::kInvalidArgument,
      "[ablation] got {} strengths and {} divergences, expected as many",
      strengths.size(),
      divergences.size()
  );
  check_values(strengths, "ablation strengths");
  check_values(divergences, "ablation divergences");
  const std::size_t different = std::set<double>(strengths.begin(), strengths.end()).size();
  require(
      different >= kFewestStrengths,
      ErrorCode::kInvalidArgument,
      "[ablation] got {} different strengths, expected {} or more",
      different,
      kFewestStrengths
  );
  return {
      .linearity = r_squared(strengths, divergences),
      .saturation = saturation(strengths, divergences),
      .overshoot = overshoot(strengths, divergences),
  };
}

NullStatistics null_statistics(std::span<const double> values) {
  check_values(values, "nulls");
  NullStatistics result{.mean = mean(values), .count = values.size()};
  double squares = 0.0;
  for (const double value : values) {
    squares += (value - result.mean) * (value - result.mean);
  }
  result.deviation = std::sqrt(squares / static_cast<double>(values.size()));
  return result;
}

std::optional<double> z_score(double value, const NullStatistics& nulls) {
  if (!std::isfinite(value)) {
    return std::nullopt;
  }
  return (value - nulls.mean) / std::max(nulls.deviation, kSmallestDeviation);
}

Interval bootstrap_interval(std::span<const double> values, const BootstrapOptions& options) {
  check_values(values, "bootstrap");
  require(
      options.resamples >= 1 && options.resamples <= kMaxResamples,
      ErrorCode::kInvalidArgument,
      "[bootstrap] resamples: got {}, expected 1 to {}",
      options.resamples,
      kMaxResamples
  );
  require(
      options.confidence > 0.0 && options.confidence < 1.0,
      ErrorCode::kInvalidArgument,
      "[bootstrap] confidence: got {}, expected a number between 0 and 1",
      options.confidence
  );
  const auto count = static_cast<double>(values.size());
  std::vector<double> means(static_cast<std::size_t>(options.resamples));
  std::uint64_t state = sample::Noise::mix(options.seed + sample::Noise::kStep);
  for (double& resampled : means) {
    double sum = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      state += sample::Noise::kStep;
      const double uniform = sample::Noise::to_uniform(sample::Noise::mix(state));
      sum += values[std::min(static_cast<std::size_t>(uniform * count), values.size() - 1)];
    }
    resampled = sum / count;
  }
  std::sort(means.begin(), means.end());
  const double outside = (1.0 - options.confidence) / 2.0;
  return {quantile(means, outside), quantile(means, 1.0 - outside)};
}

}  // namespace saker::score
