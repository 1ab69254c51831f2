// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of log-probabilities for tests of what is done with them.

#include <cmath>
#include <vector>

namespace saker::sample {

inline std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> result;
  result.reserve(probabilities.size());
  for (const double p : probabilities) {
    result.push_back(static_cast<float>(std::log(p)));
  }
  return result;
}

}  // namespace saker::sample
