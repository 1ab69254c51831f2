// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kimi Delta Attention in place of attention: projections to q, k and v and to the gates of an
// operation with a state (see kernels/kda.h). An RMS norm of each head's output is gated by a
// sigmoid, before the output projection. The gates of decays and outputs are products of two small
// projections, or of a whole one. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/recurrent/kda.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <optional>

namespace saker::nn {

struct KdaOptions {
  int hidden = 0;
  kernels::KdaShape shape;
  NormOptions norm;
  float lower_bound = 0.0F;  // See kernels::KdaWeights.
  bool whole_gates = false;  // Gates are one projection each: `f_proj` and `g_proj`.
};

class Kda {
 public:
  Kda(const Weights& weights, const KdaOptions& options);

  // x [N, hidden] -> [N, hidden]; advances this layer's caches. They are recurrent ones of
  // `empty_kda_state`.
  mx::array operator()(const mx::array& x, ForwardContext& context, int layer) const;

  // As above, added to the target.
  kernels::ResidualNorm add_to(
      const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
  ) const;

  std::size_t nbytes() const;

 private:
  // The gated outputs of all heads, [N, heads * head_dim]; advances the caches.
  mx::array attend(const mx::array& x, ForwardContext& context, int layer) const;

  kernels::KdaShape shape_;
  MergedLinear inputs_;
  std::optional<Linear> steps_;  // From the small projections; none: whole gates.
  std::optional<Linear> gate_;
  kernels::KdaWeights weights_;
  Norm norm_;
  Linear output_;
};

}  // namespace saker::nn
