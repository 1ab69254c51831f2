// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/attention.h"

#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/blocks.h"
#include "saker/kernels/ops/rope.h"

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace saker::nn {
namespace {

std::vector<MergedLinear::Part> inputs(const Weights& weights, const AttentionOptions& options) {
  const int keys = options.kv_heads * options.head_dim;
  std::vector<MergedLinear::Part> parts = {
      {weights / "q_proj", options.heads * options.head_dim * (options.output_gate ? 2 : 1)},
      {weights / "k_proj", keys},
  };
  if (!options.keys_are_values) {
    parts.push_back({weights / "v_proj", keys});
  }
  return parts;
}

}  // namespace

Attention::Attention(
    const Weights& weights, const AttentionOptions& options, std::shared_ptr<const Rope> rope
)
    : options_(options),
      rope_(std::move(rope)),
      qkv_(inputs(weights, options), options.hidden),
      output_(weights / "o_proj", options.heads * options.head_dim, options.hidden) {
  if (options.head_norm) {
    q_norm_.emplace(weights / "q_norm", options.head_dim, *options.head_norm, options.heads);
    k_norm_.emplace(weights / "k_norm", options.head_dim, *options.head_norm, options.kv_heads);
    merged_norms_ = {q_norm_->weight(), k_norm_->weight(), q_norm_->eps()};
    if (!kernels::on_cpu()) {
      merged_norms_->by_head = kernels::weights_of_heads(
          q_norm_->weight(), options.heads, k_norm_->weight(), options.kv_heads
      );
    }
  }
  if (options.value_norm) {
    value_norm_ = mx::ones({options.head_dim}, mx::float32);
    mx::eval(*value_norm_);
  }
}

template <typename Run>
auto Attention::as_block(ForwardContext& context, const Spans& spans, const Run& run) const {
  using Output = std::invoke_result_t<Run, const kernels::AttentionBlock&>;
  const auto& adapters = context.adapters();
  const auto qkv = qkv_.projection(adapters);
  const auto output = output_.projection(adapters);
  if (!qkv || !output || !is_merged(adapters, spans)) {
    return std::optional<Output>();
  }
  const auto heads = merged_heads(context);
  return std::optional<Output>(
      run(kernels::AttentionBlock{*qkv, heads, spans, options_.attend, *output})
  );
}

mx::array Attention::operator()(const mx::array& x, ForwardContext& context, int layer) const {
  const auto& spans = context.append(layer);
  const auto run = [&](const auto& block) { return kernels::attention_block(x, block); };
  if (auto output = as_block(context, spans, run)) {
    return std::move(*output);
  }
  return output_(attend(x, context, spans), context.adapters());
}

kernels::ResidualNorm Attention::add_to(
    const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
) const {
  const auto& spans = context.append(layer);
  const auto next = target.norm.after(target.stream, target.scale);
  const auto run = [&](const auto& block) { return kernels::attention_block(x, block, next); };
  if (auto output = as_block(context, spans, run)) {
    return target.norm.changed(std::move(*output), context.adapters());
  }
  return output_.add_to(target, attend(x, context, spans), context.adapters());
}

bool Attention::is_merged(const RowContext& adapters, const Spans& spans) const {
  return !options_.output_gate && !options_.keys_are_values && !value_norm_ &&
         adapters.base_only() && kernels::attends_merged(spans);
}

kernels::MergedHeads Attention::merged_heads(ForwardContext& context) const {
  const auto& table = context.rope_table(*rope_);
  return {
      .query_heads = options_.heads,
      .kv_heads = options_.kv_heads,
      .head_dim = options_.head_dim,
      .norms = merged_norms_,
      .cos = table.cos,
      .sin = table.sin,
  };
}

mx::array Attention::attend(const mx::array& x, ForwardContext& context, const Spans& spans) const {
  if (!is_merged(context.adapters(), spans)) {
    return attend_apart(x, context, spans);
  }
  const auto merged = qkv_(x, context.adapters());
  return kernels::attend_merged(merged, merged_heads(context), spans, options_.attend);
}

mx::array Attention::attend_apart(const mx::array& x, ForwardContext& context, const Spans& spans)
    const {
  const int rows = x.shape(0);
  const int dim = options_.head_dim;
  const auto parts = qkv_.split(x, context.adapters());
  const int query_width = options_.output_gate ? 2 * dim : dim;
  const auto queries = mx::reshape(parts[0], {rows, options_.heads, query_width});
  auto q = mx::slice(queries, {0, 0, 0}, {rows, options_.heads, dim});  // [N, H, D]
  auto k = mx::reshape(parts[1], {rows, options_.kv_heads, dim});       // [N, H_kv, D]
  auto v = mx::reshape(parts.back(), {rows, options_.kv_heads, dim});   // [N, H_kv, D]
  if (q_norm_) {
    q = (*q_norm_)(q, context.adapters());
    k = (*k_norm_)(k, context.adapters());
  }
  if (value_norm_) {
    v = kernels::rms_norm(v, *value_norm_, options_.value_norm->eps);
  }
  const auto& table = context.rope_table(*rope_);
  q = kernels::rope(q, table.cos, table.sin);
  k = kernels::rope(k, table.cos, table.sin);
  auto attended = kernels::attend(q, k, v, spans, options_.attend);
  if (options_.output_gate) {
    const auto gate = mx::slice(queries, {0, 0, dim}, queries.shape());
    attended = kernels::gated_activation(gate, attended, kernels::Activation::kLogistic);
  }
  return mx::reshape(attended, {rows, options_.heads * dim});
}

}  // namespace saker::nn
