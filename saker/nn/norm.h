// SPDX-License-Identifier: Apache-2.0
#pragma once

// A norm with a learned weight, which adapters can change per token. A LayerNorm's bias is added if
// its tensor exists; adapters do not change such a norm. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/blocks.h"
#include "saker/kernels/ops/norm.h"
#include "saker/nn/row_context.h"
#include "saker/nn/weights/weights.h"

#include <optional>

namespace saker::nn {

struct NormOptions {
  kernels::NormKind kind = kernels::NormKind::kRms;
  float eps = 1e-6F;
  // Added to the weight once, at load: 1 if checkpoints hold weight - 1 (Gemma).
  float weight_offset = 0.0F;
};

class Norm {
 public:
  // `groups`: each token has this many vectors that are normed with one weight, such as q's heads.
  Norm(const Weights& weights, int size, const NormOptions& options, int groups = 1);

  // x [N, size], or [N, groups, size] with groups -> the same shape and dtype.
  mx::array operator()(const mx::array& x, const RowContext& adapters) const;
  // The scaled sum and its norm; x, residual [N, size]. Dtypes: see kernels::ResidualNorm.
  kernels::ResidualNorm add(
      const mx::array& x,
      const mx::array& residual,
      const RowContext& adapters,
      const kernels::ResidualScales& scales = {}
  ) const;

  // This norm after a block that adds its output to `stream`, without adapters.
  kernels::NextNorm after(const mx::array& stream, const kernels::ResidualScales& scales) const;
  // Applies adapters to the norm of such a block.
  kernels::ResidualNorm changed(kernels::ResidualNorm result, const RowContext& adapters) const;

  // Weight and eps that apply if no token's adapter changes the norm.
  const mx::array& weight() const { return parts_.weight; }

  float eps() const { return parts_.eps; }

 private:
  kernels::NormParts parts_;
  std::optional<mx::array>
      half_weight_;  // On a GPU: for rows of bf16, whatever the weight's dtype.
  ModuleColumns module_;
};

// Where a part of a layer adds its output: the residual stream [N, hidden], and the norm after it.
struct ResidualTarget {
  const mx::array& stream;
  const Norm& norm;
  kernels::ResidualScales scales = {};

  // `output` [N, hidden] is the part's.
  kernels::ResidualNorm add(const mx::array& output, const RowContext& adapters) const {
    return norm.add(stream, output, adapters, scales);
  }

  // The addition and the norm behind a block whose result is the part's output.
  kernels::NextNorm next() const { return norm.after(stream, scales); }
};

}  // namespace saker::nn
