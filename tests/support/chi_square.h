// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pearson's test of counts against exact probabilities.

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>

namespace saker::testing {

// The chance of counts at least as far off: by the cube root of Wilson and Hilferty (1931), which
// is close from a few degrees of freedom on. 0 where something impossible was counted.
inline double chi_square_p(std::span<const int> counts, std::span<const double> probabilities) {
  double total = 0.0;
  for (const int count : counts) {
    total += count;
  }
  double chi_square = 0.0;
  int cells = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * total;
    if (expected == 0.0) {
      if (counts[i] != 0) {
        return 0.0;
      }
      continue;
    }
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
    ++cells;
  }
  const double freedom = cells - 1;
  const double spread = 2.0 / (9.0 * freedom);
  const double z = (std::cbrt(chi_square / freedom) - (1.0 - spread)) / std::sqrt(spread);
  return 0.5 * std::erfc(z / std::numbers::sqrt2);
}

}  // namespace saker::testing
