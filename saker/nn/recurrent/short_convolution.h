// SPDX-License-Identifier: Apache-2.0
#pragma once

// A gated short convolution in place of attention, as in LFM2 (see kernels/short_convolution.h),
// between two projections. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/recurrent/recurrent_span.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>

namespace saker::nn {

struct ShortConvolutionOptions {
  int hidden = 0;
  int taps = 0;

  // Bytes of a sequence's state.
  std::size_t state_bytes() const {
    return static_cast<std::size_t>(taps - 1) * static_cast<std::size_t>(hidden) * sizeof(float);
  }
};

class ShortConvolution {
 public:
  ShortConvolution(const Weights& weights, const ShortConvolutionOptions& options);

  // x [N, hidden] -> [N, hidden]; advances this layer's caches. They are recurrent ones of
  // `empty_convolution_state`.
  mx::array operator()(const mx::array& x, ForwardContext& context, int layer) const;

  // As above, added to the target.
  kernels::ResidualNorm add_to(
      const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
  ) const;

  std::size_t nbytes() const { return input_.nbytes() + output_.nbytes(); }

 private:
  // The output projection's input, [N, hidden]; advances the caches.
  mx::array convolved(const mx::array& x, ForwardContext& context, int layer) const;

  Linear input_;
  kernels::ConvolutionWeights weights_;
  Linear output_;
};

}  // namespace saker::nn
