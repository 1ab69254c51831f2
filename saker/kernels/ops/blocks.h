// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of a decoder layer, each as one operation on CPU: projections, attention or a gated
// activation between them, and optionally the addition to the residual stream and the next norm.
//
// A block gives the bits of the composition that its comment names. Where the device, the weights
// or the caches have no fused task, a block is that composition. A decode step of few, large
// operations waits less between them, and a long prefill writes no activations to memory
// (docs/adr/0018, 0055).

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/attend.h"
#include "saker/kernels/ops/linear.h"
#include "saker/kernels/ops/norm.h"
#include "saker/kernels/storage/packed_weight.h"

#include <optional>
#include <span>
#include <vector>

namespace saker::kernels {

// What follows a block: norm_residual(stream, block's result, norm, scales).
struct NextNorm {
  mx::array stream;  // [N, outputs]
  NormParts norm;
  // The weight as bf16, if the device computes in bf16: used where the block's result is bf16.
  std::optional<mx::array> half_weight = std::nullopt;
  ResidualScales scales = {};
};

// `result` is a block's.
ResidualNorm add_and_norm(const mx::array& result, const NextNorm& next);

// add_and_norm(linear(x)).
ResidualNorm linear_block(const mx::array& x, const Projection& output, const NextNorm& next);

struct MlpBlock {
  Projection gate_up;  // Gates, then ups: [2 F, K].
  Activation activation;
  Projection down;  // [outputs, F]
};

// linear(gated_activation(linear(x))): x [N, K] -> [N, outputs].
mx::array mlp_block(const mx::array& x, const MlpBlock& block);
ResidualNorm mlp_block(const mx::array& x, const MlpBlock& block, const NextNorm& next);

struct AttentionBlock {
  Projection qkv;  // [(H + 2 H_kv) D, K]
  const MergedHeads& heads;
  const std::vector<AttendSpan>& spans;  // REQUIRES: attends_merged(spans).
  const AttendOptions& options;
  Projection output;  // [outputs, H * D]
};

// linear(attend_merged(linear(x))): x [N, K] -> [N, outputs].
mx::array attention_block(const mx::array& x, const AttentionBlock& block);
ResidualNorm attention_block(const mx::array& x, const AttentionBlock& block, const NextNorm& next);

}  // namespace saker::kernels
