// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear attention by the gated delta rule behind a short causal convolution (Gated Delta Networks,
// https://arxiv.org/abs/2412.06464, as in Qwen 3.5). For each row x [C]:
//
//   q, k, v = silu(convolution of the last `taps` rows)       channel by channel
//   q = q / |q| / sqrt(key_dim),  k = k / |k|                 head by head,
//                                                             |x| = sqrt(sum of squares + 1e-6)
//   decay = exp(-decay_rate softplus(a + step_bias))
//   beta = sigmoid(b)
//   S = decay S + k (beta (v - decay S^T k))^T                value head by value head
//   y = S^T q
//
// Each key head serves value_heads / key_heads value heads. All is float32. Rows run one after the
// other, so a sequence may be cut anywhere without changing a bit.

#include "saker/kernels/mx.h"

#include <cstddef>
#include <vector>

namespace saker::kernels {

inline constexpr int kMaxDeltaTaps = 64;

struct DeltaShape {
  int key_heads = 0;
  int value_heads = 0;  // A multiple of key_heads.
  int key_dim = 0;
  int value_dim = 0;
  int taps = 0;  // Length of the convolution, 1 to kMaxDeltaTaps.

  // C: q and k of all heads, then v.
  int channels() const { return 2 * key_heads * key_dim + value_heads * value_dim; }

  int outputs() const { return value_heads * value_dim; }

  // Bytes of a DeltaState.
  std::size_t state_bytes() const {
    const auto inputs = static_cast<std::size_t>(taps - 1) * static_cast<std::size_t>(channels());
    return (inputs + static_cast<std::size_t>(outputs()) * static_cast<std::size_t>(key_dim)) *
           sizeof(float);
  }

  bool operator==(const DeltaShape&) const = default;
};

struct DeltaWeights {
  mx::array convolution;  // [taps, C], the newest row's tap last.
  mx::array decay_rate;   // [value_heads]
  mx::array step_bias;    // [value_heads]
};

// The recurrent state of one sequence. Immutable.
struct DeltaState {
  mx::array inputs;  // [taps - 1, C], the newest last.
  mx::array memory;  // [value_heads, key_dim, value_dim]: S.
};

DeltaState empty_delta_state(const DeltaShape& shape);

// Rows [first_row, first_row + row_count) continue one sequence.
struct DeltaSpan {
  int first_row = 0;
  int row_count = 0;
  DeltaState state;
};

struct DeltaInputs {
  mx::array rows;  // x [N, C]
  mx::array a;     // [N, value_heads]
  mx::array b;     // [N, value_heads]
};

struct DeltaResult {
  mx::array rows;                  // y [N, outputs]
  std::vector<DeltaState> states;  // After each span.
};

// REQUIRES: the spans follow each other and cover all rows.
DeltaResult gated_delta(
    const DeltaInputs& inputs,
    const DeltaWeights& weights,
    const DeltaShape& shape,
    const std::vector<DeltaSpan>& spans
);

// The state after the first `count` rows of a span of these inputs.
DeltaState replay_delta(
    const DeltaInputs& inputs,
    const DeltaWeights& weights,
    const DeltaShape& shape,
    const DeltaSpan& span,
    int count
);

// `gated_delta` from plain MLX operations, row by row: the reference in tests, and the path on
// devices without our bodies.
DeltaResult gated_delta_reference(
    const DeltaInputs& inputs,
    const DeltaWeights& weights,
    const DeltaShape& shape,
    const std::vector<DeltaSpan>& spans
);

}  // namespace saker::kernels
