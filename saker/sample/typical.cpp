// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/typical.h"

#include "saker/base/log_prob.h"
#include "saker/base/row_loops.h"
#include "saker/sample/nucleus.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace saker::sample {

namespace {

constexpr float kRemoved = -std::numeric_limits<float>::infinity();

bool typical_on(const SamplingOptions& options) {
  return options.typical_p > 0.0 && options.typical_p < 1.0;
}

double standard_deviation(std::span<const float> row) {
  double sum = 0.0;
  double count = 0.0;
  for (const float x : row) {
    if (x >= kLowest) {
      sum += static_cast<double>(x);
      count += 1.0;
    }
  }
  const double mean = sum / count;
  double squares = 0.0;
  for (const float x : row) {
    if (x >= kLowest) {
      const double distance = static_cast<double>(x) - mean;
      squares += distance * distance;
    }
  }
  return std::sqrt(squares / count);
}

void keep_near_best(std::span<float> row, float max, double sigmas) {
  const auto cut = static_cast<float>(static_cast<double>(max) - sigmas * standard_deviation(row));
  std::ranges::replace_if(row, [cut](float x) { return x < cut; }, kRemoved);
}

double entropy(std::span<const float> log_probs) {
  std::array<float, 256> probabilities;
  double sum = 0.0;
  for (std::size_t i = 0; i < log_probs.size(); i += probabilities.size()) {
    const std::size_t count = std::min(probabilities.size(), log_probs.size() - i);
    row_loops().exponentials(log_probs.data() + i, count, probabilities.data());
    for (std::size_t j = 0; j < count; ++j) {
      // Skips removed tokens, since 0 times -infinity is NaN.
      if (log_probs[i + j] >= kLowest) {
        sum -= static_cast<double>(probabilities[j]) * static_cast<double>(log_probs[i + j]);
      }
    }
  }
  return sum;
}

void keep_typical(std::span<float> row, double p) {
  const auto expected = static_cast<float>(entropy(row));
  std::vector<float> closeness(row.size());
  std::ranges::transform(row, closeness.begin(), [expected](float x) {
    return -std::abs(x + expected);
  });
  const float max = *std::ranges::max_element(closeness);
  const float threshold = nucleus_threshold(closeness, row, max, p);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (closeness[i] < threshold) {
      row[i] = kRemoved;
    }
  }
}

}  // namespace

bool row_filters_needed(const SamplingOptions& options) {
  return options.top_n_sigma > 0.0 || typical_on(options);
}

float filter_row(const SamplingOptions& options, std::span<float> log_probs, float max) {
  if (options.top_n_sigma > 0.0) {
    keep_near_best(log_probs, max, options.top_n_sigma);
  }
  if (typical_on(options)) {
    keep_typical(log_probs, options.typical_p);
  }
  return max_logit(log_probs);
}

}  // namespace saker::sample
