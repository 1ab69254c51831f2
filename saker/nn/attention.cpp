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
  if (options.joined) {
    return {{weights / options.names.joined, options.heads * options.head_dim + 2 * keys}};
  }
  std::vector<MergedLinear::Part> parts = {
      {weights / "q_proj", options.heads * options.head_dim * (options.output_gate ? 2 : 1)},
      {weights / "k_proj", keys},
  };
  if (!options.keys_are_values) {
    parts.push_back({weights / "v_proj", keys});
  }
  if (options.gate) {
    const int width = options.gate->by_head ? 1 : options.head_dim;
    parts.push_back({weights / options.gate->name, options.heads * width});
  }
  return parts;
}

Norm head_norm(const Weights& weights, const AttentionOptions& options, int heads) {
  const int joined = options.norms_join_heads ? heads : 1;
  return {weights, joined * options.head_dim, *options.head_norm, heads / joined};
}

}  // namespace

Attention::Attention(
    const Weights& weights, const AttentionOptions& options, std::shared_ptr<const Rope> rope
)
    : options_(options),
      rope_(std::move(rope)),
      qkv_(inputs(weights, options), options.input > 0 ? options.input : options.hidden),
      output_(weights / options.names.output, options.heads * options.head_dim, options.hidden) {
  if (options.head_norm) {
    q_norm_ = head_norm(weights / options.names.query_norm, options, options.heads);
    k_norm_ = head_norm(weights / options.names.key_norm, options, options.kv_heads);
  }
  if (options.head_norm && !options.norms_join_heads && !options.norms_follow_rope) {
    merged_norms_ = {q_norm_->weight(), k_norm_->weight(), q_norm_->eps()};
    if (!kernels::on_cpu()) {
      merged_norms_->by_head = kernels::weights_of_heads(
          q_norm_->weight(), options.heads, k_norm_->weight(), options.kv_heads
      );
    }
  }
  if (options.sinks) {
    options_.attend.sinks = mx::contiguous(weights.vector("sinks", options.heads));
    mx::eval(*options_.attend.sinks);
  }
  if (options.value_norm || options.unit_norm) {
    ones_ = mx::ones({options.head_dim}, mx::float32);
    mx::eval(*ones_);
  }
}

template <typename Run>
auto Attention::as_block(ForwardContext& context, const Spans& spans, const Run& run) const {
  using Output = std::invoke_result_t<Run, const kernels::AttentionBlock&>;
  const auto& adapters = context.adapters();
  const auto qkv = qkv_.projection(adapters);
  const auto output = output_.projection(adapters);
  if (!qkv || !output || !is_merged(context, spans)) {
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
  const auto next = target.next();
  const auto run = [&](const auto& block) { return kernels::attention_block(x, block, next); };
  if (auto output = as_block(context, spans, run)) {
    return target.norm.changed(std::move(*output), context.adapters());
  }
  return output_.add_to(target, attend(x, context, spans), context.adapters());
}

bool Attention::is_merged(const ForwardContext& context, const Spans& spans) const {
  const bool has_plain_norms = q_norm_.has_value() == merged_norms_.has_value();
  return !options_.output_gate && !options_.gate && !options_.keys_are_values && !ones_ &&
         has_plain_norms && options_.query_scaling.is_one(context.positions()) &&
         context.adapters().base_only() && kernels::attends_merged(spans);
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
      .pairs = table.pairs,
  };
}

mx::array Attention::attend(const mx::array& x, ForwardContext& context, const Spans& spans) const {
  if (!is_merged(context, spans)) {
    return attend_apart(x, context, spans);
  }
  const auto merged = qkv_(x, context.adapters());
  return kernels::attend_merged(merged, merged_heads(context), spans, options_.attend);
}

std::vector<mx::array> Attention::projected(const mx::array& x, const RowContext& adapters) const {
  if (!options_.joined) {
    return qkv_.split(x, adapters);
  }
  const auto merged = qkv_(x, adapters);
  const int keys = options_.heads * options_.head_dim;
  const int values = keys + options_.kv_heads * options_.head_dim;
  const auto columns = [&](int first, int end) {
    return mx::slice(merged, {0, first}, {merged.shape(0), end});
  };
  return {columns(0, keys), columns(keys, values), columns(values, merged.shape(1))};
}

mx::array Attention::prepared(
    const mx::array& heads, const std::optional<Norm>& norm, ForwardContext& context
) const {
  const auto normed = [&](const mx::array& x) {
    if (!norm) {
      return x;
    }
    if (!options_.norms_join_heads) {
      return (*norm)(x, context.adapters());
    }
    return mx::reshape((*norm)(mx::reshape(x, {x.shape(0), -1}), context.adapters()), x.shape());
  };
  const auto& table = context.rope_table(*rope_);
  if (options_.norms_follow_rope) {
    return normed(kernels::rope(heads, table.cos, table.sin, table.pairs));
  }
  const auto rotated = kernels::rope(normed(heads), table.cos, table.sin, table.pairs);
  return options_.unit_norm ? kernels::rms_norm(rotated, *ones_, options_.unit_norm->eps) : rotated;
}

mx::array Attention::gated(const mx::array& attended, const std::vector<mx::array>& parts) const {
  const auto& gate = parts.back();
  if (!options_.gate->by_head) {
    return kernels::gated_activation(
        mx::reshape(gate, attended.shape()), attended, options_.gate->activation
    );
  }
  const auto factors = kernels::activation(gate, options_.gate->activation);
  return mx::multiply(attended, mx::expand_dims(factors, 2));
}

mx::array Attention::attend_apart(const mx::array& x, ForwardContext& context, const Spans& spans)
    const {
  const int rows = x.shape(0);
  const int dim = options_.head_dim;
  const auto parts = projected(x, context.adapters());
  const int query_width = options_.output_gate ? 2 * dim : dim;
  const auto queries = mx::reshape(parts[0], {rows, options_.heads, query_width});
  const auto heads = mx::slice(queries, {0, 0, 0}, {rows, options_.heads, dim});  // [N, H, D]
  auto q = prepared(heads, q_norm_, context);
  const auto k = prepared(mx::reshape(parts[1], {rows, options_.kv_heads, dim}), k_norm_, context);
  auto v = mx::reshape(
      parts[options_.keys_are_values ? 1 : 2], {rows, options_.kv_heads, dim}
  );  // [N, H_kv, D]
  if (!options_.query_scaling.is_one(context.positions())) {
    q = options_.query_scaling.scaled(q, context.positions());
  }
  if (options_.value_norm) {
    v = kernels::rms_norm(v, *ones_, options_.value_norm->eps);
  }
  auto attended = kernels::attend(q, k, v, spans, options_.attend);
  if (options_.gate) {
    attended = gated(attended, parts);
  }
  if (options_.output_gate) {
    const auto gate = mx::slice(queries, {0, 0, dim}, queries.shape());
    attended = kernels::gated_activation(gate, attended, kernels::Activation::kLogistic);
  }
  return mx::reshape(attended, {rows, options_.heads * dim});
}

}  // namespace saker::nn
