// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kimi Delta Attention (https://arxiv.org/abs/2510.26692): the gated delta rule with a decay for each
// channel of a head's keys, behind a short causal convolution. For each row of q, k, v and steps, D
// elements per head:
//
//   q, k, v = silu(convolution of the last `taps` rows)       channel by channel
//   q = q / |q| / sqrt(D),  k = k / |k|                       head by head,
//                                                             |x| = sqrt(sum of squares + 1e-6)
//   decay = exp(-decay_rate softplus(step + step_bias))       channel by channel
//     or    exp(lower_bound sigmoid(decay_rate (step + step_bias)))
//   beta = sigmoid(share)                                     head by head
//   S = diag(decay) S
//   S = S + k (beta (v - S^T k))^T
//   y = S^T q
//
// All is float32. Rows run one after the other, so a sequence may be cut anywhere without changing
// a bit.

#include "saker/kernels/ops/recurrent/recurrent_span.h"

#include <array>
#include <cstddef>
#include <vector>

namespace saker::kernels {

struct KdaShape {
  int heads = 0;
  int head_dim = 0;  // D
  int taps = 0;      // Length of the convolutions, 1 to kMaxConvolutionTaps.

  // Elements of a row of q, and of k, v and steps.
  int width() const { return heads * head_dim; }

  // Bytes of a state.
  std::size_t state_bytes() const {
    const auto rows = 3 * static_cast<std::size_t>(taps - 1) + static_cast<std::size_t>(head_dim);
    return rows * static_cast<std::size_t>(width()) * sizeof(float);
  }

  bool operator==(const KdaShape&) const = default;
};

struct KdaWeights {
  std::array<mx::array, 3> convolutions;  // q, k and v: [taps, width], the newest tap last.
  mx::array decay_rate;                   // [heads]
  mx::array step_bias;                    // [width]
  float lower_bound = 0.0F;               // 0: none.
};

// The state before the first row: the last rows of q, k and v, [taps - 1, width] each, the newest
// last, and S [heads, D, D].
StateArrays empty_kda_state(const KdaShape& shape);

struct KdaInputs {
  std::array<mx::array, 3> rows;  // q, k and v, [N, width] each.
  mx::array steps;                // [N, width]
  mx::array shares;               // [N, heads]
};

// y [N, width]. REQUIRES: the spans follow each other and cover all rows.
RecurrentResult kda(
    const KdaInputs& inputs,
    const KdaWeights& weights,
    const KdaShape& shape,
    const std::vector<RecurrentSpan>& spans
);

// As above from plain MLX operations, row by row: the reference in tests, and the path on devices
// without our bodies.
RecurrentResult kda_reference(
    const KdaInputs& inputs,
    const KdaWeights& weights,
    const KdaShape& shape,
    const std::vector<RecurrentSpan>& spans
);

}  // namespace saker::kernels
