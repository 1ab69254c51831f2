// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bodies of recurrent operations: of the gated delta rule (see kernels/gated_delta.h and kda.h), and
// of the convolution and the scan beside it (kernels/selective_scan.h). A body sees one head of the rows of
// one sequence and takes the rows in order. So bits depend neither on where a sequence is cut nor
// on what runs beside it.

#include <cstddef>

namespace saker::kernels {

// out[i] = silu(bias[i] + sum over taps j of weights[j][i] * inputs[j][i]), taps in order.
struct ConvolvedRow {
  const float* const* inputs;  // [taps], the oldest first.
  const float* weights;        // [taps] rows.
  std::ptrdiff_t weight_stride;
  int taps;
  float* out;
  const float* bias = nullptr;  // Null: none.
  bool activated = true;        // False: without silu.
};

// Maximum columns of S that a body works on together.
inline constexpr int kDeltaColumns = 64;

// Per row, in order: S = decay S + k (beta (v - decay S^T k))^T, then out = S^T q. S is [key_dim,
// value_dim].
struct DeltaHead {
  const float* from;  // S before the first row.
  float* to;          // S after the last row; not `from`.
  float* scratch;     // [key_dim][kDeltaColumns]
  int key_dim;
  int value_dim;
  int rows;
  const float* q;  // Rows of [key_dim], as k; v has rows of [value_dim].
  const float* k;
  const float* v;
  std::ptrdiff_t stride;  // Between rows of q, k and v.
  const float* decay;
  const float* beta;
  std::ptrdiff_t gate_stride;
  float* out;  // Rows of [value_dim].
  std::ptrdiff_t out_stride;
  // Rows of [key_dim] in place of `decay`: one decay per row of S. Null: none.
  const float* key_decays = nullptr;
  std::ptrdiff_t key_decay_stride = 0;
};

// out[i] = exp(-rate softplus(steps[i] + bias[i])); with a lower bound, exp(lower_bound *
// sigmoid(rate (steps[i] + bias[i]))).
struct DecayRow {
  const float* steps;
  const float* bias;
  float rate;
  float* out;
  float lower_bound = 0.0F;  // 0: none.
};

struct ScanHead;  // scan_bodies.h

struct DeltaBodies {
  void (*convolve)(const ConvolvedRow& row, int width);
  // x *= scale / sqrt(sum of squares + eps)
  void (*normalize)(float* x, int width, float eps, float scale);
  void (*decay)(const DecayRow& row, int width);
  // REQUIRES: at least one row.
  void (*run_head)(const DeltaHead& head);
  // REQUIRES: at least one row.
  void (*scan_head)(const ScanHead& head);
};

}  // namespace saker::kernels
