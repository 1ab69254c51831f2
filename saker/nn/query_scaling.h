// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saker/kernels/mx.h"

#include <cstdint>
#include <span>

namespace saker::nn {

// A scale of queries that grows with their position: 1 + beta * log(1 + floor((position + shift) /
// period)).
struct QueryScaling {
  double beta = 0.0;  // 0: none.
  std::int64_t period = 1;
  std::int64_t shift = 0;

  // True if the scale is 1 at each of these positions.
  bool is_one(std::span<const std::int64_t> positions) const;

  // Queries [N, H, D] times the scales of their positions.
  mx::array scaled(const mx::array& q, std::span<const std::int64_t> positions) const;
};

}  // namespace saker::nn
