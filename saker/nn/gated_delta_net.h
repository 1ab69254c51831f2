// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear attention with a state of fixed size (see kernels/gated_delta.h), as in Qwen 3.5. It has
// projections to q, k, v and gates, and applies the gated delta rule. An RMS norm of each head's
// output is gated by silu(z), before the output projection. Immutable.
//
// Checkpoints have projections of their own to q, k and v, to z, and to both gates. Or they have one
// to q, k, v and z of each key's head in turn, and one to the gates of each.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/arrange_columns.h"
#include "saker/kernels/ops/recurrent/gated_delta.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <vector>

namespace saker::nn {

struct GatedDeltaOptions {
  int hidden = 0;
  kernels::DeltaShape shape;
  NormOptions norm;
};

class GatedDeltaNet {
 public:
  // Most tokens of a pass of which any number can be rolled back: the last token and the maximum
  // number of drafts. Their inputs are kept until the commit.
  static constexpr int kReplayedRows = 65;

  GatedDeltaNet(const Weights& weights, const GatedDeltaOptions& options);

  // x [N, hidden] -> [N, hidden]; advances this layer's caches. They are recurrent ones of
  // `empty_delta_state`.
  mx::array operator()(const mx::array& x, ForwardContext& context, int layer) const;

  // As above, added to the target.
  kernels::ResidualNorm add_to(
      const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
  ) const;

  std::size_t nbytes() const { return inputs_.nbytes() + output_.nbytes(); }

 private:
  // The gated outputs of all heads, [N, value_heads * value_dim]; advances the caches.
  mx::array attend(const mx::array& x, ForwardContext& context, int layer) const;

  // Outputs of the projections: q, k and v; z; the gates of steps and of decays. Each [N, width].
  std::vector<mx::array> project(const mx::array& x, const RowContext& adapters) const;

  kernels::DeltaShape shape_;
  MergedLinear inputs_;
  std::vector<kernels::ColumnRange> order_;  // For the projections' outputs; empty: as they are.
  kernels::DeltaWeights weights_;
  Norm norm_;
  Linear output_;
};

}  // namespace saker::nn
