// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rotation of each position, computed on the host in double precision, so its bits depend on
// the position only. Immutable; layers of one kind share one.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/rope.h"
#include "saker/nn/rope_options.h"

#include <cstdint>
#include <span>
#include <vector>

namespace saker::nn {

struct RopeTable {
  mx::array cos;  // [N, R / 2] float32
  mx::array sin;
  kernels::RopePairs pairs = kernels::RopePairs::kHalves;
};

class Rope {
 public:
  // For heads of `head_dim` elements. REQUIRES: options.rotated(head_dim) is even and positive, and
  // kFactors has one factor per pair.
  Rope(int head_dim, const RopeOptions& options);

  RopeTable table(std::span<const std::int64_t> positions) const;

  // Radians per position, [R / 2].
  std::span<const double> frequencies() const { return frequencies_; }

 private:
  std::vector<double> frequencies_;
  kernels::RopePairs pairs_;
  double scale_;  // Multiplies cos and sin.
};

}  // namespace saker::nn
