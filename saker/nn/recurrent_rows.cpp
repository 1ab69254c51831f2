// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/recurrent_rows.h"

#include <cstddef>
#include <utility>

namespace saker::nn {

mx::array depthwise_taps(const Weights& weights, int channels, int taps) {
  const auto found = weights.find("weight");
  const bool last = found && !found->shape.empty() && found->shape.back() == taps;
  const auto values = last ? weights.array("weight", {channels, 1, taps})
                           : weights.array("weight", {channels, taps, 1});
  return mx::contiguous(mx::transpose(mx::reshape(values, {channels, taps})));
}

kernels::ConvolutionWeights depthwise_convolution(const Weights& weights, int channels, int taps) {
  kernels::ConvolutionWeights result{depthwise_taps(weights, channels, taps)};
  mx::eval(result.taps);
  if (weights.has("bias")) {
    result.bias = weights.vector("bias", channels);
  }
  return result;
}

std::vector<kernels::RecurrentSpan> recurrent_spans(const ForwardContext& context, int layer) {
  const auto caches = context.recurrent(layer);
  std::vector<kernels::RecurrentSpan> spans;
  spans.reserve(caches.size());
  int first_row = 0;
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const int count = context.spans()[i].row_count;
    spans.push_back({first_row, count, caches[i]->state()});
    first_row += count;
  }
  return spans;
}

void advance_states(
    ForwardContext& context,
    int layer,
    const std::vector<kernels::RecurrentSpan>& spans,
    std::vector<kernels::StateArrays> states,
    const ReplaySpan& replay
) {
  const auto caches = context.recurrent(layer);
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const kernels::RecurrentSpan& span = spans[i];
    cache::RecurrentCache::Replay of_span;
    if (is_replayed(span)) {
      of_span = [replay, span](int count) { return replay(span, count); };
    }
    caches[i]->advance(span.row_count, std::move(states[i]), std::move(of_span));
  }
}

mx::array rows_of(const mx::array& x, const kernels::RecurrentSpan& span, int count) {
  return mx::slice(x, {span.first_row, 0}, {span.first_row + count, x.shape(1)});
}

}  // namespace saker::nn
