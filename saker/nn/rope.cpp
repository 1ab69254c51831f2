// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace saker::nn {
namespace {

// Scales dimensions by their wavelength relative to the original context. Longer than context /
// low_freq_factor: stretched. Shorter than context / high_freq_factor: kept. Between: blended by
// the number of waves in the context.
void scale_llama3(std::vector<double>& frequencies, const RopeOptions& options) {
  for (auto& frequency : frequencies) {
    const double waves = options.original_context * frequency / (2.0 * std::numbers::pi);
    const double kept = std::clamp(
        (waves - options.low_freq_factor) / (options.high_freq_factor - options.low_freq_factor),
        0.0,
        1.0
    );
    frequency *= kept + (1.0 - kept) / options.factor;
  }
}

// The ramp runs over dimension indices. It goes from the one with beta_fast rotations in the
// original context (kept) to the one with beta_slow rotations (stretched).
void scale_yarn(std::vector<double>& frequencies, int dims, const RopeOptions& options) {
  const auto dimension_of = [&](double rotations) {
    const double ratio = options.original_context / (rotations * 2.0 * std::numbers::pi);
    return dims * std::log(ratio) / (2.0 * std::log(options.theta));
  };
  double low = dimension_of(options.beta_fast);
  double high = dimension_of(options.beta_slow);
  if (options.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1.0);
  if (low == high) {
    high += 0.001;  // As in the reference: a step instead of a ramp.
  }
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] *= stretched / options.factor + (1.0 - stretched);
  }
}

}  // namespace

Rope::Rope(int head_dim, const RopeOptions& options)
    : pairs_(options.pairs), scale_(options.attention_factor) {
  const bool proportional = options.kind == RopeKind::kProportional;
  const int rotated = options.rotated(head_dim);
  const int dims = proportional ? head_dim : rotated;
  for (int i = 0; i < rotated / 2; ++i) {
    frequencies_.push_back(std::pow(options.theta, -2.0 * i / dims));
  }
  frequencies_.resize(static_cast<std::size_t>(dims / 2));  // 0: pairs that do not rotate.
  switch (options.kind) {
    case RopeKind::kDefault:
      break;
    case RopeKind::kNone:
      std::ranges::fill(frequencies_, 0.0);
      break;
    case RopeKind::kLinear:
    case RopeKind::kProportional:
      for (auto& frequency : frequencies_) {
        frequency /= options.factor;
      }
      break;
    case RopeKind::kLlama3:
      scale_llama3(frequencies_, options);
      break;
    case RopeKind::kYarn:
      scale_yarn(frequencies_, dims, options);
      break;
    case RopeKind::kFactors:
      for (std::size_t i = 0; i < frequencies_.size(); ++i) {
        frequencies_[i] /= options.factors.at(i);
      }
      break;
  }
}

RopeTable Rope::table(std::span<const std::int64_t> positions) const {
  std::vector<float> cosines;
  std::vector<float> sines;
  cosines.reserve(positions.size() * frequencies_.size());
  sines.reserve(positions.size() * frequencies_.size());
  for (const auto position : positions) {
    for (const double frequency : frequencies_) {
      const double angle = static_cast<double>(position) * frequency;
      cosines.push_back(static_cast<float>(std::cos(angle) * scale_));
      sines.push_back(static_cast<float>(std::sin(angle) * scale_));
    }
  }
  const mx::Shape shape{static_cast<int>(positions.size()), static_cast<int>(frequencies_.size())};
  return {
      mx::array(cosines.data(), shape),
      mx::array(sines.data(), shape),
      pairs_,
  };
}

}  // namespace saker::nn
