// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/shared_attention.h"

#include "saker/kernels/ops/rope.h"

#include <utility>

namespace saker::nn {

SharedAttention::SharedAttention(
    const Weights& weights,
    const AttentionOptions& options,
    std::shared_ptr<const Rope> rope,
    int source
)
    : options_(options),
      rope_(std::move(rope)),
      source_(source),
      query_(weights / "q_proj", options.hidden, options.heads * options.head_dim),
      output_(weights / "o_proj", options.heads * options.head_dim, options.hidden) {
  if (options.head_norm) {
    norm_.emplace(weights / "q_norm", options.head_dim, *options.head_norm, options.heads);
  }
}

mx::array SharedAttention::operator()(
    const mx::array& x, ForwardContext& context, int /*layer*/
) const {
  return output_(attend(x, context), context.adapters());
}

kernels::ResidualNorm SharedAttention::add_to(
    const ResidualTarget& target, const mx::array& x, ForwardContext& context, int /*layer*/
) const {
  return output_.add_to(target, attend(x, context), context.adapters());
}

mx::array SharedAttention::attend(const mx::array& x, ForwardContext& context) const {
  const int rows = x.shape(0);
  auto q = mx::reshape(query_(x, context.adapters()), {rows, options_.heads, options_.head_dim});
  if (norm_) {
    q = (*norm_)(q, context.adapters());
  }
  const auto& table = context.rope_table(*rope_);
  q = kernels::rope(q, table.cos, table.sin, table.pairs);
  const auto attended = kernels::attend_stored(q, context.appended(source_), options_.attend);
  return mx::reshape(attended, {rows, -1});
}

}  // namespace saker::nn
