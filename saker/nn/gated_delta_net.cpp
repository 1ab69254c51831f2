// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/gated_delta_net.h"

#include "saker/kernels/ops/activation.h"
#include "saker/nn/recurrent_rows.h"

#include <utility>
#include <vector>

namespace saker::nn {
namespace {

kernels::DeltaWeights delta_weights(const Weights& weights, const kernels::DeltaShape& shape) {
  kernels::DeltaWeights result{
      depthwise_taps(weights / "conv1d", shape.channels(), shape.taps),
      mx::exp(weights.vector("A_log", shape.value_heads)),
      weights.vector("dt_bias", shape.value_heads),
  };
  mx::eval(result.convolution, result.decay_rate, result.step_bias);
  return result;
}

}  // namespace

GatedDeltaNet::GatedDeltaNet(const Weights& weights, const GatedDeltaOptions& options)
    : shape_(options.shape),
      inputs_(
          {{weights / "in_proj_qkv", shape_.channels()},
           {weights / "in_proj_z", shape_.outputs()},
           {weights / "in_proj_b", shape_.value_heads},
           {weights / "in_proj_a", shape_.value_heads}},
          options.hidden
      ),
      weights_(delta_weights(weights, shape_)),
      norm_(weights / "norm", shape_.value_dim, options.norm, shape_.value_heads),
      output_(weights / "out_proj", shape_.outputs(), options.hidden) {}

mx::array GatedDeltaNet::operator()(const mx::array& x, ForwardContext& context, int layer) const {
  return output_(attend(x, context, layer), context.adapters());
}

kernels::ResidualNorm GatedDeltaNet::add_to(
    const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
) const {
  return output_.add_to(target, attend(x, context, layer), context.adapters());
}

mx::array GatedDeltaNet::attend(const mx::array& x, ForwardContext& context, int layer) const {
  const int rows = x.shape(0);
  const auto parts = inputs_.split(x, context.adapters());
  const kernels::DeltaInputs inputs{.rows = parts[0], .a = parts[3], .b = parts[2]};
  const auto caches = context.recurrent(layer);
  std::vector<kernels::DeltaSpan> spans;
  int first_row = 0;
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const auto& state = caches[i]->state();
    const int count = context.spans()[i].row_count;
    spans.push_back({first_row, count, {state[0], state[1]}});
    first_row += count;
  }
  auto result = kernels::gated_delta(inputs, weights_, shape_, spans);
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const kernels::DeltaSpan& span = spans[i];
    cache::RecurrentCache::Replay replay;
    if (span.row_count > 1 && span.row_count <= kReplayedRows) {
      replay = [inputs, span, weights = weights_, shape = shape_](int count) {
        auto states = kernels::replay_delta(inputs, weights, shape, span, count);
        return cache::RecurrentState{std::move(states.inputs), std::move(states.memory)};
      };
    }
    auto& state = result.states[i];
    caches[i]->advance(
        span.row_count, {std::move(state.inputs), std::move(state.memory)}, std::move(replay)
    );
  }
  const mx::Shape heads = {rows, shape_.value_heads, shape_.value_dim};
  const auto normed = norm_(mx::reshape(result.rows, heads), context.adapters());
  const auto gated =
      kernels::gated_activation(mx::reshape(parts[1], heads), normed, kernels::Activation::kSilu);
  return mx::reshape(gated, {rows, shape_.outputs()});
}

}  // namespace saker::nn
