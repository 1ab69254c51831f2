// SPDX-License-Identifier: Apache-2.0
#pragma once

// RMS norm with a learned weight. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/norm.h"
#include "saker/nn/weights.h"

namespace saker::nn {

struct NormOptions {
  float eps = 1e-6F;
  float weight_offset =
      0.0F;  // Added to the weight once, at load: 1 where checkpoints hold weight - 1 (Gemma).
};

class RmsNorm {
 public:
  RmsNorm(const Weights& weights, int size, const NormOptions& options);

  // x [..., size] -> the same shape and dtype.
  mx::array operator()(const mx::array& x) const;
  // Norm of x + residual, and the sum; x, residual [N, size].
  kernels::ResidualNorm add(const mx::array& x, const mx::array& residual) const;

 private:
  mx::array weight_;
  float eps_;
};

}  // namespace saker::nn
