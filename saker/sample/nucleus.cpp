// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/nucleus.h"

#include "saker/base/portable_math.h"
#include "saker/base/row_loops.h"

#include <algorithm>
#include <array>
#include <vector>

namespace saker::sample {

namespace {

struct Weighted {
  float value = 0.0F;
  double mass = 0.0;
};

// Rounded to float32, as other samplers do: then .5 + .25 reaches a top_p of .75.
double probability(float log_prob) {
  return static_cast<float>(portable_exp(log_prob));
}

double mass(std::span<const Weighted> tokens) {
  double sum = 0.0;
  for (const Weighted& token : tokens) {
    sum += token.mass;
  }
  return sum;
}

std::vector<Weighted> tokens_of_band(
    std::span<const float> values, std::span<const float> log_probs, float max, std::size_t band
) {
  std::vector<Weighted> found;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= kLowest && band_of(values[i], max) == band) {
      found.push_back({values[i], probability(log_probs[i])});
    }
  }
  return found;
}

// The lowest value t with above + mass(x > t) < target, in expected linear time. Reorders `tokens`.
float threshold_among(std::span<Weighted> tokens, double above, double target) {
  float threshold = kLowest;
  while (!tokens.empty()) {
    const float pivot = tokens[tokens.size() / 2].value;
    const auto middle = std::partition(
        tokens.begin(), tokens.end(), [pivot](const Weighted& token) { return token.value > pivot; }
    );
    const auto split = static_cast<std::size_t>(middle - tokens.begin());
    const double with_upper = above + mass(tokens.first(split));
    if (with_upper >= target) {
      tokens = tokens.first(split);  // Drops the pivot and everything below.
      continue;
    }
    threshold = pivot;
    const auto rest = std::partition(middle, tokens.end(), [pivot](const Weighted& token) {
      return token.value == pivot;
    });
    above = with_upper + mass(std::span<Weighted>(middle, rest));
    tokens = std::span<Weighted>(rest, tokens.end());
    if (above >= target) {
      break;
    }
  }
  return threshold;
}

}  // namespace

float nucleus_threshold(
    std::span<const float> values, std::span<const float> log_probs, float max, double target
) {
  std::array<double, kBands> band_mass{};
  std::array<float, 256> probabilities;
  for (std::size_t i = 0; i < values.size(); i += probabilities.size()) {
    const std::size_t count = std::min(probabilities.size(), values.size() - i);
    row_loops().exponentials(log_probs.data() + i, count, probabilities.data());
    for (std::size_t j = 0; j < count; ++j) {
      band_mass[band_of(values[i + j], max)] += static_cast<double>(probabilities[j]);
    }
  }
  double above = 0.0;
  for (std::size_t band = 0; band < kBands; ++band) {
    if (above + band_mass[band] >= target) {
      std::vector<Weighted> tokens = tokens_of_band(values, log_probs, max, band);
      return threshold_among(tokens, above, target);
    }
    above += band_mass[band];
  }
  return kLowest;
}

}  // namespace saker::sample
