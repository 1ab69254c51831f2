// SPDX-License-Identifier: Apache-2.0
#pragma once

// Self-attention with grouped heads: q, k and v projections; optional norms of q and k; rotation;
// fused attention over the layer's cache; output projection. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/attend.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/query_scaling.h"
#include "saker/nn/rope.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace saker::nn {

// Names of modules that differ between architectures.
struct AttentionNames {
  std::string_view query_norm = "q_norm";
  std::string_view key_norm = "k_norm";
  std::string_view output = "o_proj";
  std::string_view joined = "qkv_proj";
};

// A projection of the rows that attention reads, whose activation multiplies the heads' results.
struct GateProjection {
  std::string_view name;
  bool by_head = false;  // One number for each head, else one for each element.
  kernels::Activation activation = kernels::Activation::kLogistic;
};

struct AttentionOptions {
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  kernels::AttendOptions attend;                        // Scale, soft cap, sliding window.
  std::optional<NormOptions> head_norm;                 // For q and k, over each head.
  bool norms_join_heads = false;                        // That norm is over all heads together.
  bool norms_follow_rope = false;                       // That norm is after the rotation.
  std::optional<NormOptions> unit_norm = std::nullopt;  // As above, after it, without a weight.
  QueryScaling query_scaling = {};
  bool joined = false;  // q, k and v are one tensor.
  int input = 0;        // Width of the rows that it reads; 0: `hidden`.
  AttentionNames names = {};
  // q_proj's outputs are each head's q and then a gate: sigmoid(gate) multiplies the head's result.
  bool output_gate = false;
  std::optional<GateProjection> gate = std::nullopt;
  bool sinks = false;                     // See kernels::AttendOptions: the tensor `sinks`.
  bool keys_are_values = false;           // No v_proj: k_proj's outputs are the values.
  std::optional<NormOptions> value_norm;  // For v, over each head, without a weight.
};

class Attention {
 public:
  // Layers with equal rotation share `rope`.
  Attention(
      const Weights& weights, const AttentionOptions& options, std::shared_ptr<const Rope> rope
  );

  // x [N, input] -> [N, hidden]; reserves and fills the rows of this layer's caches.
  mx::array operator()(const mx::array& x, ForwardContext& context, int layer) const;

  // As above, added to the target.
  kernels::ResidualNorm add_to(
      const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
  ) const;

  std::size_t nbytes() const { return qkv_.nbytes() + output_.nbytes(); }

 private:
  using Spans = std::vector<kernels::AttendSpan>;

  // True if all rows of the projections are merged heads that attend_merged() takes.
  bool is_merged(const ForwardContext& context, const Spans& spans) const;
  kernels::MergedHeads merged_heads(ForwardContext& context) const;
  // Calls `run` with the whole part as a block of kernels; nullopt if it can't be one.
  template <typename Run>
  auto as_block(ForwardContext& context, const Spans& spans, const Run& run) const;
  // The heads' results, [N, heads * head_dim].
  mx::array attend(const mx::array& x, ForwardContext& context, const Spans& spans) const;
  // As attend(), each operation of its own.
  mx::array attend_apart(const mx::array& x, ForwardContext& context, const Spans& spans) const;
  // q, k and v of a pass's rows, side by side in heads.
  std::vector<mx::array> projected(const mx::array& x, const RowContext& adapters) const;
  // The heads' results [N, H, D] times their gate.
  mx::array gated(const mx::array& attended, const std::vector<mx::array>& parts) const;
  // Norms and rotates heads [N, heads, D].
  mx::array prepared(
      const mx::array& heads, const std::optional<Norm>& norm, ForwardContext& context
  ) const;

  AttentionOptions options_;
  std::shared_ptr<const Rope> rope_;
  MergedLinear qkv_;
  Linear output_;
  std::optional<Norm> q_norm_;
  std::optional<Norm> k_norm_;
  std::optional<kernels::MergedHeads::Norms> merged_norms_;  // For attend_merged.
  std::optional<mx::array> ones_;  // [head_dim], for norms without weights.
};

}  // namespace saker::nn
