// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/stack/encoder_layer.h"

#include "saker/kernels/ops/blocks.h"

namespace saker::nn {

EncoderAttention::EncoderAttention(
    const LinearParts& inputs, const Weights& output, const EncoderAttentionOptions& options
)
    : options_(options),
      inputs_(inputs, options.hidden),
      output_(output, options.heads * options.head_dim, options.hidden) {}

mx::array EncoderAttention::operator()(
    const mx::array& x,
    const std::vector<kernels::AttendSpan>& spans,
    const RopeTable& rope,
    const RowContext& adapters
) const {
  const kernels::MergedHeads heads{
      .query_heads = options_.heads,
      .kv_heads = options_.heads,
      .head_dim = options_.head_dim,
      .norms = std::nullopt,
      .cos = rope.cos,
      .sin = rope.sin,
  };
  const auto inputs = inputs_.projection(adapters);
  const auto output = output_.projection(adapters);
  if (inputs && output) {
    return kernels::attention_block(x, {*inputs, heads, spans, options_.attend, *output});
  }
  const auto merged = inputs_(x, adapters);
  return output_(kernels::attend_merged(merged, heads, spans, options_.attend), adapters);
}

EncoderMlp::EncoderMlp(
    const LinearParts& inputs, const Weights& output, const EncoderMlpOptions& options
)
    : options_(options),
      inputs_(inputs, options.hidden),
      output_(output, options.intermediate, options.hidden) {}

mx::array EncoderMlp::operator()(const mx::array& x, const RowContext& adapters) const {
  const auto inputs = inputs_.projection(adapters);
  const auto output = output_.projection(adapters);
  if (options_.gated && inputs && output) {
    return kernels::mlp_block(x, {*inputs, options_.activation, *output});
  }
  const auto rows = inputs_(x, adapters);
  return output_(
      options_.gated ? kernels::gated_activation(rows, options_.activation)
                     : kernels::activation(rows, options_.activation),
      adapters
  );
}

kernels::ResidualNorm EncoderLayer::operator()(
    const kernels::ResidualNorm& state,
    const std::vector<kernels::AttendSpan>& spans,
    const RopeTable& rope,
    const RowContext& adapters
) const {
  const auto next = [&](const kernels::ResidualNorm& result) {
    return pre_norm ? result : kernels::ResidualNorm{result.normed, result.normed};
  };
  const auto attended =
      next(after_attention.add(state.sum, attention(state.normed, spans, rope, adapters), adapters)
      );
  return next(after_mlp.add(attended.sum, mlp(attended.normed, adapters), adapters));
}

}  // namespace saker::nn
