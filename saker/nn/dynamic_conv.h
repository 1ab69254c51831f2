// SPDX-License-Identifier: Apache-2.0
#pragma once

// A causal convolution over the few rows of a span, whose kernel is a learned one plus a part that
// follows from each row, for groups of neighbouring elements (DFlash 2):
//
//   y[t] = sum over i of (base[i] + dynamic[t, i, group]) * x[t - i],  rows before the span are
//   zero
//
// It comes in pairs around another layer: the first changes that layer's input, the second its
// output, and one projection of the input gives the dynamic kernels of both. Immutable.

#include "saker/kernels/mx.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/linear.h"
#include "saker/nn/weights.h"

namespace saker::nn {

struct DynamicConvOptions {
  int hidden = 0;
  int taps = 0;   // Rows that a result reads.
  int group = 0;  // Elements of a group, a divisor of `hidden`.
};

class DynamicConv {
 public:
  // Takes base_kernel [2, taps, hidden] and kernel_projection.weight [2 * taps * groups, hidden].
  DynamicConv(const Weights& weights, const DynamicConvOptions& options);

  struct Prepared {
    mx::array rows;     // [N, hidden]
    mx::array dynamic;  // For `finish`, [N, taps, groups].
  };

  // x [N, hidden], the pass's rows.
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
