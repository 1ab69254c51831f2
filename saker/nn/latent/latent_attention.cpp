// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/latent/latent_attention.h"

#include "saker/kernels/ops/experts/head_linear.h"
#include "saker/kernels/ops/rope.h"

#include <utility>
#include <vector>

namespace saker::nn {
namespace {

int query_width(const LatentOptions& options) {
  return options.heads * (options.plain_dim + options.rope_dim);
}

std::vector<MergedLinear::Part> inputs(const Weights& weights, const LatentOptions& options) {
  const bool direct = options.query_rank == 0;
  return {
      {weights / (direct ? "q_proj" : "q_a_proj"),
       direct ? query_width(options) : options.query_rank},
      {weights / "kv_a_proj_with_mqa", options.row_dim()},
  };
}

// Elements [first, end) of each row.
mx::array columns(const mx::array& x, int first, int end) {
  mx::Shape begin(x.ndim(), 0);
  mx::Shape stop = x.shape();
  begin.back() = first;
  stop.back() = end;
  return mx::slice(x, std::move(begin), std::move(stop));
}

}  // namespace

LatentAttention::LatentAttention(
    const Weights& weights, const LatentOptions& options, std::shared_ptr<const Rope> rope
)
    : options_(options),
      rope_(std::move(rope)),
      inputs_(inputs(weights, options), options.hidden),
      norm_(weights / "kv_a_layernorm", options.rank, options.norm),
      heads_(latent_weights(weights, options)),
      output_(weights / options.output, options.heads * options.value_dim, options.hidden) {
  if (options.query_rank > 0) {
    query_norm_.emplace(weights / "q_a_layernorm", options.query_rank, options.norm);
    query_.emplace(weights / "q_b_proj", options.query_rank, query_width(options));
  }
  if (options.head_gate) {
    gate_.emplace(weights / "g_proj", options.hidden, options.heads);
  }
}

mx::array LatentAttention::operator()(const mx::array& x, ForwardContext& context, int layer)
    const {
  return output_(attend(x, context, layer), context.adapters());
}

kernels::ResidualNorm LatentAttention::add_to(
    const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
) const {
  return output_.add_to(target, attend(x, context, layer), context.adapters());
}

std::size_t LatentAttention::nbytes() const {
  const std::size_t by_head = heads_.to_latent.expert_nbytes() + heads_.from_latent.expert_nbytes();
  return inputs_.nbytes() + (query_ ? query_->nbytes() : 0) + (gate_ ? gate_->nbytes() : 0) +
         static_cast<std::size_t>(options_.heads) * by_head + output_.nbytes();
}

mx::array LatentAttention::queries(const mx::array& input, ForwardContext& context) const {
  const auto& adapters = context.adapters();
  const auto wide = query_ ? (*query_)((*query_norm_)(input, adapters), adapters) : input;
  const int dim = options_.plain_dim + options_.rope_dim;
  const auto heads = mx::reshape(wide, {wide.shape(0), options_.heads, dim});
  const auto& table = context.rope_table(*rope_);
  const auto turned =
      kernels::rope(columns(heads, options_.plain_dim, dim), table.cos, table.sin, table.pairs);
  const auto q =
      kernels::head_linear(columns(heads, 0, options_.plain_dim), heads_.to_latent, turned);
  const QueryScaling& scaling = options_.query_scaling;
  return scaling.is_one(context.positions()) ? q : scaling.scaled(q, context.positions());
}

mx::array LatentAttention::attend(const mx::array& x, ForwardContext& context, int layer) const {
  const auto& spans = context.append(layer);
  const int rows = x.shape(0);
  const int rank = options_.rank;
  const auto parts = inputs_.split(x, context.adapters());
  const auto q = queries(parts[0], context);
  const auto latent = norm_(columns(parts[1], 0, rank), context.adapters());
  const auto key =
      mx::reshape(columns(parts[1], rank, options_.row_dim()), {rows, 1, options_.rope_dim});
  const auto& table = context.rope_table(*rope_);
  const auto turned = kernels::rope(key, table.cos, table.sin, table.pairs);
  const auto k = mx::concatenate({mx::reshape(latent, {rows, 1, rank}), turned}, 2);
  const auto attended = kernels::attend(q, k, columns(k, 0, rank), spans, options_.attend);
  const auto y = kernels::head_linear(attended, heads_.from_latent);
  const mx::Shape whole{rows, options_.heads * options_.value_dim};
  if (!gate_) {
    return mx::reshape(y, whole);
  }
  const auto gate = mx::sigmoid(mx::astype((*gate_)(x, context.adapters()), mx::float32));
  const auto gated = mx::multiply(y, mx::expand_dims(gate, 2));
  return mx::reshape(mx::astype(gated, y.dtype()), whole);
}

}  // namespace saker::nn
