// SPDX-License-Identifier: Apache-2.0
#pragma once

// Selection by mass: the tokens with the largest values that reach a probability together. Rows may
// be long, so it goes down from the best in bands and never sorts a whole row.

#include <cstddef>
#include <limits>
#include <span>

namespace saker::sample {

// Bands of equal width below the best value; the last one has everything further down.
inline constexpr std::size_t kBands = 256;
inline constexpr float kBandsPerUnit = 8.0F;

// A threshold that keeps every token but those of -infinity.
inline constexpr float kLowest = std::numeric_limits<float>::lowest();

inline std::size_t band_of(float value, float max) {
  const float below = (max - value) * kBandsPerUnit;
  return below < static_cast<float>(kBands - 1) ? static_cast<std::size_t>(below) : kBands - 1;
}

// The lowest value t such that tokens with values above t have a mass below `target`. Tokens at or
// above t are the smallest set with that mass, ties included. Returns kLowest if all
// together have less. Values of -infinity are out. `max` is the largest of `values`; `log_probs`
// may be `values`.
float nucleus_threshold(
    std::span<const float> values, std::span<const float> log_probs, float max, double target
);

}  // namespace saker::sample
