// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/attention.h"

#include "saker/kernels/activation.h"
#include "saker/kernels/rope.h"

namespace saker::nn {

Attention::Attention(
    const Weights& weights, const AttentionOptions& options, std::shared_ptr<const Rope> rope
)
    : options_(options),
      rope_(std::move(rope)),
      qkv_(
          {{weights / "q_proj", options.heads * options.head_dim * (options.output_gate ? 2 : 1)},
           {weights / "k_proj", options.kv_heads * options.head_dim},
           {weights / "v_proj", options.kv_heads * options.head_dim}},
          options.hidden
      ),
      output_(weights / "o_proj", options.heads * options.head_dim, options.hidden) {
  if (options.head_norm) {
    q_norm_.emplace(weights / "q_norm", options.head_dim, *options.head_norm, options.heads);
    k_norm_.emplace(weights / "k_norm", options.head_dim, *options.head_norm, options.kv_heads);
  }
}

mx::array Attention::operator()(const mx::array& x, ForwardContext& context, int layer) const {
  const int rows = x.shape(0);
  const int dim = options_.head_dim;
  const auto parts = qkv_.split(x, context.adapters());
  const int query_width = options_.output_gate ? 2 * dim : dim;
  const auto queries = mx::reshape(parts[0], {rows, options_.heads, query_width});
  auto q = mx::slice(queries, {0, 0, 0}, {rows, options_.heads, dim});   // [N, H, D]
  auto k = mx::reshape(parts[1], {rows, options_.kv_heads, dim});        // [N, H_kv, D]
  const auto v = mx::reshape(parts[2], {rows, options_.kv_heads, dim});  // [N, H_kv, D]
  if (q_norm_) {
    q = (*q_norm_)(q, context.adapters());
    k = (*k_norm_)(k, context.adapters());
  }
  const auto& table = context.rope_table(*rope_);
  q = kernels::rope(q, table.cos, table.sin);
  k = kernels::rope(k, table.cos, table.sin);
  auto attended = kernels::attend(q, k, v, context.append(layer), options_.attend);
  if (options_.output_gate) {
    const auto gate = mx::slice(queries, {0, 0, dim}, queries.shape());
    attended = kernels::gated_activation(gate, attended, kernels::Activation::kLogistic);
  }
  return output_(mx::reshape(attended, {rows, options_.heads * dim}), context.adapters());
}

}  // namespace saker::nn
