// SPDX-License-Identifier: Apache-2.0
#pragma once

// RMS norm with a learned weight, which adapters can change per token. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/blocks.h"
#include "saker/kernels/ops/norm.h"
#include "saker/nn/row_context.h"
#include "saker/nn/weights/weights.h"

#include <optional>

namespace saker::nn {

struct NormOptions {
  float eps = 1e-6F;
  // Added to the weight once, at load: 1 if checkpoints hold weight - 1 (Gemma).
  float weight_offset = 0.0F;
};

class RmsNorm {
 public:
  // `groups`: each token has this many vectors that are normed with one weight, such as q's heads.
  RmsNorm(const Weights& weights, int size, const NormOptions& options, int groups = 1);

  // x [N, size], or [N, groups, size] with groups -> the same shape and dtype.
  mx::array operator()(const mx::array& x, const RowContext& adapters) const;
  // The sum (x + residual) * scale and its norm; x, residual [N, size]. Dtypes: see
  // kernels::ResidualNorm.
  kernels::ResidualNorm add(
      const mx::array& x, const mx::array& residual, const RowContext& adapters, float scale = 1.0F
  ) const;

  // This norm after a block that adds its output to `stream`, without adapters.
  kernels::NextNorm after(const mx::array& stream, float scale) const;
  // Applies adapters to the norm of such a block.
  kernels::ResidualNorm changed(kernels::ResidualNorm result, const RowContext& adapters) const;

  // Weight and eps that apply if no token's adapter changes the norm.
  const mx::array& weight() const { return weight_; }

  float eps() const { return eps_; }

 private:
  mx::array weight_;
  std::optional<mx::array>
      half_weight_;  // On a GPU: for rows of bf16, whatever the weight's dtype.
  float eps_;
  ModuleColumns module_;
};

// Where a part of a layer adds its output: the residual stream [N, hidden], and the norm after it.
struct ResidualTarget {
  const mx::array& stream;
  const RmsNorm& norm;
  float scale = 1.0F;  // Scales the sum.

  // `output` [N, hidden] is the part's.
  kernels::ResidualNorm add(const mx::array& output, const RowContext& adapters) const {
    return norm.add(stream, output, adapters, scale);
  }
};

}  // namespace saker::nn
