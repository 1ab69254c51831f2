// SPDX-License-Identifier: Apache-2.0
#pragma once

// RMS norm with a learned weight, which adapters can change row by row. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/norm.h"
#include "saker/nn/adapter.h"
#include "saker/nn/weights.h"

#include <optional>

namespace saker::nn {

struct NormOptions {
  float eps = 1e-6F;
  float weight_offset =
      0.0F;  // Added to the weight once, at load: 1 where checkpoints hold weight - 1 (Gemma).
};

class RmsNorm {
 public:
  // `groups`: that many vectors of a row are normed with the same weight, as the heads of q.
  RmsNorm(const Weights& weights, int size, const NormOptions& options, int groups = 1);

  // x [N, size], with groups [N, groups, size] -> the same shape and dtype.
  mx::array operator()(const mx::array& x, const RowContext& adapters) const;
  // Norm of (x + residual) * scale, and that sum; x, residual [N, size]. Dtypes: see
  // kernels::ResidualNorm.
  kernels::ResidualNorm add(
      const mx::array& x, const mx::array& residual, const RowContext& adapters, float scale = 1.0F
  ) const;

  // Where no row's adapter changes it, it is these.
  const mx::array& weight() const { return weight_; }

  float eps() const { return eps_; }

 private:
  mx::array weight_;
  std::optional<mx::array>
      half_weight_;  // On a GPU: for rows of bf16, whatever the weight's dtype.
  float eps_;
  ModuleColumns module_;
};

}  // namespace saker::nn
