// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/query_scaling.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace saker::nn {

bool QueryScaling::is_one(std::span<const std::int64_t> positions) const {
  return beta == 0.0 || std::ranges::all_of(positions, [&](std::int64_t position) {
           return position + shift < period;
         });
}

mx::array QueryScaling::scaled(const mx::array& q, std::span<const std::int64_t> positions) const {
  std::vector<float> scales;
  scales.reserve(positions.size());
  for (const std::int64_t position : positions) {
    const auto whole_periods = (position + shift) / period;
    const double growth = std::log1p(static_cast<double>(whole_periods));
    scales.push_back(static_cast<float>(1.0 + beta * growth));
  }
  const mx::array rows(scales.data(), {static_cast<int>(scales.size()), 1, 1});
  return mx::astype(mx::multiply(q, rows), q.dtype());
}

}  // namespace saker::nn
