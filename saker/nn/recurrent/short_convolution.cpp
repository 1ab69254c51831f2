// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/recurrent/short_convolution.h"

#include "saker/kernels/ops/recurrent/short_convolution.h"
#include "saker/nn/recurrent_rows.h"

#include <algorithm>
#include <utility>

namespace saker::nn {

ShortConvolution::ShortConvolution(const Weights& weights, const ShortConvolutionOptions& options)
    : input_(weights / "in_proj", options.hidden, 3 * options.hidden),
      weights_(depthwise_convolution(weights / "conv", options.hidden, options.taps)),
      output_(weights / "out_proj", options.hidden, options.hidden) {}

mx::array ShortConvolution::operator()(const mx::array& x, ForwardContext& context, int layer)
    const {
  return output_(convolved(x, context, layer), context.adapters());
}

kernels::ResidualNorm ShortConvolution::add_to(
    const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
) const {
  const auto& adapters = context.adapters();
  const auto input = input_.projection(adapters);
  const auto output = output_.projection(adapters);
  const auto spans = recurrent_spans(context, layer);
  if (input && output && std::ranges::none_of(spans, is_replayed)) {
    const auto next = target.next();
    const kernels::ConvolutionBlock block{*input, weights_, spans, *output};
    if (kernels::runs_convolution_block(x, block, next)) {
      auto result = kernels::convolution_block(x, block, next);
      advance_states(context, layer, spans, std::move(result.states), nullptr);
      return target.norm.changed(std::move(result.rows), adapters);
    }
  }
  return output_.add_to(target, convolved(x, context, layer), context.adapters());
}

mx::array ShortConvolution::convolved(const mx::array& x, ForwardContext& context, int layer)
    const {
  const auto rows = input_(x, context.adapters());
  const auto spans = recurrent_spans(context, layer);
  auto result = kernels::short_convolution(rows, weights_, spans);
  const auto replay = [rows, weights = weights_](const kernels::RecurrentSpan& span, int count) {
    return kernels::short_convolution(
               rows_of(rows, span, count), weights, {{0, count, span.state}}
    ).states.front();
  };
  advance_states(context, layer, spans, std::move(result.states), replay);
  return result.rows;
}

}  // namespace saker::nn
