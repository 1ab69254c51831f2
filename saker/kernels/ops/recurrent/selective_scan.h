// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state space of Mamba-2 (https://arxiv.org/abs/2405.21060) behind a short causal convolution.
// For each row [C] and its steps [heads]:
//
//   x, b, c = silu(convolution of the last `taps` rows)       channel by channel
//   step  = softplus(step + step_bias), within limits         head by head
//   decay = exp(-decay_rate step)
//   S = decay S + b (step x)^T
//   y = S^T c + skip x
//
// Heads are cut into `groups`; those of a group have the same b and c. All is float32. Rows run one
// after the other, so a sequence may be cut anywhere without changing a bit.

#include "saker/kernels/ops/recurrent/recurrent_span.h"

#include <cstddef>
#include <limits>
#include <vector>

namespace saker::kernels {

struct ScanShape {
  int heads = 0;  // A multiple of groups.
  int head_dim = 0;
  int groups = 1;
  int state_dim = 0;
  int taps = 0;  // Length of the convolution, 1 to kMaxConvolutionTaps.

  // C: x of all heads, then b and c of all groups.
  int channels() const { return outputs() + 2 * groups * state_dim; }

  int outputs() const { return heads * head_dim; }

  // Bytes of a state.
  std::size_t state_bytes() const {
    const auto inputs = static_cast<std::size_t>(taps - 1) * static_cast<std::size_t>(channels());
    return (inputs + static_cast<std::size_t>(outputs()) * static_cast<std::size_t>(state_dim)) *
           sizeof(float);
  }

  bool operator==(const ScanShape&) const = default;
};

struct ScanWeights {
  ConvolutionWeights convolution;
  mx::array decay_rate;  // [heads], as the next two.
  mx::array step_bias;
  mx::array skip;
  float min_step = 0.0F;
  float max_step = std::numeric_limits<float>::infinity();
};

// The state before the first row: the last rows [taps - 1, C], the newest last, and S [heads,
// state_dim, head_dim].
StateArrays empty_scan_state(const ScanShape& shape);

struct ScanInputs {
  mx::array rows;   // [N, C]
  mx::array steps;  // [N, heads]
};

// The result's rows are y [N, outputs]. REQUIRES: the spans follow each other and cover all rows.
RecurrentResult selective_scan(
    const ScanInputs& inputs,
    const ScanWeights& weights,
    const ScanShape& shape,
    const std::vector<RecurrentSpan>& spans
);

// As above from plain MLX operations, row by row: the reference in tests, and the path on devices
// without our bodies.
RecurrentResult selective_scan_reference(
    const ScanInputs& inputs,
    const ScanWeights& weights,
    const ScanShape& shape,
    const std::vector<RecurrentSpan>& spans
);

}  // namespace saker::kernels
