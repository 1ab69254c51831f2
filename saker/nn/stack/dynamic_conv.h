// SPDX-License-Identifier: Apache-2.0
#pragma once

// A causal convolution over a span's few tokens (DFlash 2). Its kernel is a learned one plus a part
// computed from each token, for groups of neighbouring elements:
//
//   y[t] = sum over i of (base[i] + dynamic[t, i, group]) * x[t - i],  x = 0 before the span
//
// It comes in pairs around another layer: the first changes that layer's input, the second its
// output. One projection of the input gives the dynamic kernels of both. Immutable.

#include "saker/kernels/mx.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/linear.h"
#include "saker/nn/weights/weights.h"

namespace saker::nn {

struct DynamicConvOptions {
  int hidden = 0;
  int taps = 0;   // Tokens that one result reads.
  int group = 0;  // Elements per group, a divisor of `hidden`.
};

class DynamicConv {
 public:
  // Reads base_kernel [2, taps, hidden] and kernel_projection.weight [2 * taps * groups, hidden].
  DynamicConv(const Weights& weights, const DynamicConvOptions& options);

  struct Prepared {
    mx::array rows;     // [N, hidden]
    mx::array dynamic;  // For `finish`, [N, taps, groups].
  };

  // x [N, hidden]: the pass's tokens.
  Prepared prepare(const mx::array& x, const ForwardContext& context) const;
  mx::array finish(const mx::array& x, const mx::array& dynamic, const ForwardContext& context)
      const;

 private:
  // `side`: 0 for the input, 1 for the output.
  mx::array convolve(
      const mx::array& x, const mx::array& dynamic, int side, const ForwardContext& context
  ) const;

  DynamicConvOptions options_;
  mx::array base_;  // [2, taps, groups, group]
  Linear projection_;
};

}  // namespace saker::nn
