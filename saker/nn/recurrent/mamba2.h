// SPDX-License-Identifier: Apache-2.0
#pragma once

// Mamba-2 in place of attention: projections to a gate, the rows of a selective scan (see
// kernels/selective_scan.h) and its steps; then an RMS norm and silu(gate). Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/recurrent/selective_scan.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/weights/weights.h"

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

namespace saker::nn {

struct Mamba2Options {
  int hidden = 0;
  kernels::ScanShape shape;
  float min_step = 0.0F;
  float max_step = std::numeric_limits<float>::infinity();
  NormOptions norm;
  int norm_groups = 1;            // Parts of the output that are normed alone; 0: no norm.
  bool norm_before_gate = false;  // Else the gated rows are normed.
  // Factors of in_proj's outputs: the gate, the heads' rows, what writes and reads the state, steps.
  std::array<float, 5> input_scales{1.0F, 1.0F, 1.0F, 1.0F, 1.0F};

  // How many outputs each of these has.
  std::array<int, 5> input_counts() const {
    const int states = shape.groups * shape.state_dim;
    return {shape.outputs(), shape.outputs(), states, states, shape.heads};
  }
};

class Mamba2 {
 public:
  Mamba2(const Weights& weights, const Mamba2Options& options);

  // x [N, hidden] -> [N, hidden]; advances this layer's caches. They are recurrent ones of
  // `empty_scan_state`.
  mx::array operator()(const mx::array& x, ForwardContext& context, int layer) const;

  // As above, added to the target.
  kernels::ResidualNorm add_to(
      const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
  ) const;

  std::size_t nbytes() const { return input_.nbytes() + output_.nbytes(); }

 private:
  // The gated outputs of all heads, [N, outputs]; advances the caches.
  mx::array scanned(const mx::array& x, ForwardContext& context, int layer) const;
  mx::array gated(const mx::array& rows, const mx::array& gate, const RowContext& adapters) const;
  mx::array normed(const mx::array& rows, const RowContext& adapters) const;

  Mamba2Options options_;
  Linear input_;
  kernels::ScanWeights weights_;
  std::optional<Norm> norm_;                // For whole rows.
  std::optional<mx::array> input_factors_;  // One for each of in_proj's outputs.
  std::optional<mx::array> group_factors_;  // [outputs]: the norm of groups.
  Linear output_;
};

}  // namespace saker::nn
