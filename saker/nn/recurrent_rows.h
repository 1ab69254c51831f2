// SPDX-License-Identifier: Apache-2.0
#pragma once

// Code of all layers with a state of fixed size: the states of a pass's sequences, their change, and
// a short convolution's kernel.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/recurrent/recurrent_span.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/weights/weights.h"

#include <functional>
#include <vector>

namespace saker::nn {

// Most tokens of a pass of which any number can be rolled back: the last token and the maximum
// number of drafts. Their inputs are kept until the commit.
inline constexpr int kReplayedRows = 65;

// The kernel of a depthwise convolution as [taps, C]; checkpoints have [C, taps, 1] or [C, 1, taps].
mx::array depthwise_taps(const Weights& weights, int channels, int taps);
// As above, with a bias if its tensor exists.
kernels::ConvolutionWeights depthwise_convolution(const Weights& weights, int channels, int taps);

// The pass's spans with this layer's states.
std::vector<kernels::RecurrentSpan> recurrent_spans(const ForwardContext& context, int layer);

// The state after the first `count` rows of a span.
using ReplaySpan =
    std::function<kernels::StateArrays(const kernels::RecurrentSpan& span, int count)>;

// True if rows of a span may be rolled back, by a replay of its inputs.
inline bool is_replayed(const kernels::RecurrentSpan& span) {
  return span.row_count > 1 && span.row_count <= kReplayedRows;
}

// Advances this layer's caches to `states`, one per span. `replay` is kept for spans of which
// rows may be rolled back.
void advance_states(
    ForwardContext& context,
    int layer,
    const std::vector<kernels::RecurrentSpan>& spans,
    std::vector<kernels::StateArrays> states,
    const ReplaySpan& replay
);

// Rows of a span alone.
mx::array rows_of(const mx::array& x, const kernels::RecurrentSpan& span, int count);

}  // namespace saker::nn
