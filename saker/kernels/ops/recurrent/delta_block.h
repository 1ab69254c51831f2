// SPDX-License-Identifier: Apache-2.0
#pragma once

// A layer of the gated delta rule as one operation on CPU: projections, the rule, the norm and the
// gate of each head, and the addition to the residual stream with the next norm (see ops/blocks.h).

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/blocks.h"
#include "saker/kernels/ops/linear.h"
#include "saker/kernels/ops/recurrent/gated_delta.h"

#include <vector>

namespace saker::kernels {

struct DeltaBlock {
  Projection inputs;  // q, k and v [C]; the gates z of outputs; then b and a: their rows, [.., K].
  const DeltaWeights& weights;
  const DeltaShape& shape;
  const std::vector<DeltaSpan>& spans;
  const mx::array& norm;  // [value_dim]: the RMS norm of heads.
  float eps;
  Projection output;  // [.., outputs]
};

struct DeltaBlockResult {
  ResidualNorm rows;
  std::vector<DeltaState> states;  // After each span.
};

// True if this device runs the block on such rows.
bool runs_delta_block(const mx::array& x, const DeltaBlock& block, const NextNorm& next);

// add_and_norm() of linear(gated_activation(z, rms_norm(gated_delta(linear(x))))), where silu is the
// activation. REQUIRES: runs_delta_block(); the spans follow each other and cover all rows.
DeltaBlockResult delta_block(const mx::array& x, const DeltaBlock& block, const NextNorm& next);

}  // namespace saker::kernels
