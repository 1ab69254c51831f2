// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/stack/block_attention.h"

#include "saker/kernels/ops/attend.h"
#include "saker/kernels/ops/rope.h"

#include <utility>

namespace saker::nn {

BlockAttention::BlockAttention(
    const Weights& weights, const AttentionOptions& options, std::shared_ptr<const Rope> rope
)
    : options_(options),
      rope_(std::move(rope)),
      query_(weights / "q_proj", options.hidden, options.heads * options.head_dim),
      key_value_(
          {{weights / "k_proj", options.kv_heads * options.head_dim},
           {weights / "v_proj", options.kv_heads * options.head_dim}},
          options.hidden
      ),
      output_(weights / "o_proj", options.heads * options.head_dim, options.hidden),
      query_norm_(weights / "q_norm", options.head_dim, *options.head_norm, options.heads),
      key_norm_(weights / "k_norm", options.head_dim, *options.head_norm, options.kv_heads) {}

BlockAttention::Rows BlockAttention::rows(const mx::array& x, ForwardContext& context) const {
  const auto parts = key_value_.split(x, {});
  const mx::Shape shape = {x.shape(0), options_.kv_heads, options_.head_dim};
  const auto& table = context.rope_table(*rope_);
  const auto keys = key_norm_(mx::reshape(parts[0], shape), {});
  return {kernels::rope(keys, table.cos, table.sin, table.pairs), mx::reshape(parts[1], shape)};
}

void BlockAttention::remember(const Rows& rows, ForwardContext& context, int layer) {
  for (const auto& span : context.append(layer)) {
    const auto part = [&](const mx::array& x) {
      const mx::Shape end = {span.first_row + span.row_count, x.shape(1), x.shape(2)};
      return mx::transpose(mx::slice(x, {span.first_row, 0, 0}, end), {1, 0, 2});
    };
    span.store->write(span.first_position, part(rows.keys), part(rows.values));
  }
}

mx::array BlockAttention::operator()(const mx::array& x, ForwardContext& context, int layer) const {
  return output_(attend(x, context, layer), {});
}

kernels::ResidualNorm BlockAttention::add_to(
    const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
) const {
  return output_.add_to(target, attend(x, context, layer), {});
}

mx::array BlockAttention::attend(const mx::array& x, ForwardContext& context, int layer) const {
  const int count = x.shape(0);
  const auto own = rows(x, context);
  const auto& table = context.rope_table(*rope_);
  auto q = mx::reshape(query_(x, {}), {count, options_.heads, options_.head_dim});
  q = kernels::rope(query_norm_(q, {}), table.cos, table.sin, table.pairs);
  const auto attended =
      kernels::attend(q, own.keys, own.values, context.append(layer), options_.attend);
  return mx::reshape(attended, {count, options_.heads * options_.head_dim});
}

}  // namespace saker::nn
