// SPDX-License-Identifier: Apache-2.0
#pragma once

// A short causal convolution between two gates (LFM2, https://arxiv.org/abs/2511.23404). A row is
// [b | c | x], C elements each:
//
//   u = b x
//   y = c (sum over taps j of w_j u of the row j before, plus a bias)     channel by channel
//
// The state of a sequence is u of its last `taps` - 1 rows, [taps - 1, C]. All is float32. A row's
// bits do not depend on where its sequence is cut.

#include "saker/kernels/ops/blocks.h"
#include "saker/kernels/ops/linear.h"
#include "saker/kernels/ops/recurrent/recurrent_span.h"

#include <vector>

namespace saker::kernels {

// The state before the first row.
StateArrays empty_convolution_state(int taps, int channels);

// rows [N, 3 C] -> [N, C]. REQUIRES: the spans follow each other and cover all rows.
RecurrentResult short_convolution(
    const mx::array& rows,
    const ConvolutionWeights& weights,
    const std::vector<RecurrentSpan>& spans
);

// A layer of it as one operation on CPU (see ops/blocks.h).
struct ConvolutionBlock {
  Projection input;  // [3 C, K]
  const ConvolutionWeights& weights;
  const std::vector<RecurrentSpan>& spans;
  Projection output;  // [.., C]
};

struct ConvolutionBlockResult {
  ResidualNorm rows;
  std::vector<StateArrays> states;  // After each span.
};

// True if this device runs the block on such rows.
bool runs_convolution_block(
    const mx::array& x, const ConvolutionBlock& block, const NextNorm& next
);

// add_and_norm() of linear(short_convolution(linear(x))). REQUIRES: runs_convolution_block(); spans as
// above.
ConvolutionBlockResult convolution_block(
    const mx::array& x, const ConvolutionBlock& block, const NextNorm& next
);

// short_convolution() from plain MLX operations: the reference in tests, and the path on devices without our
// bodies.
RecurrentResult short_convolution_reference(
    const mx::array& rows,
    const ConvolutionWeights& weights,
    const std::vector<RecurrentSpan>& spans
);

}  // namespace saker::kernels
