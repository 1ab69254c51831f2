// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/recurrent/kda.h"

#include "saker/kernels/ops/activation.h"
#include "saker/nn/recurrent_rows.h"

#include <string_view>
#include <utility>
#include <vector>

namespace saker::nn {
namespace {

// Checkpoints have q's kernel in `q_conv1d`, MLX's in `q_conv.conv`.
mx::array taps_of(
    const Weights& weights,
    std::string_view published,
    std::string_view own,
    const kernels::KdaShape& shape
) {
  const Weights first = weights / published;
  return depthwise_taps(
      first.has("weight") ? first : weights / own / "conv", shape.width(), shape.taps
  );
}

// A number per head: [heads], or [1, 1, heads, 1].
mx::array decay_rates(const Weights& weights, int heads) {
  const auto found = weights.find("A_log");
  const bool is_wide = found && found->shape.size() == 4;
  const auto logs =
      is_wide ? weights.array("A_log", {1, 1, heads, 1}) : weights.array("A_log", {heads});
  return mx::exp(mx::reshape(logs, {heads}));
}

kernels::KdaWeights kda_weights(const Weights& weights, const KdaOptions& options) {
  const kernels::KdaShape& shape = options.shape;
  kernels::KdaWeights result{
      .convolutions =
          {taps_of(weights, "q_conv1d", "q_conv", shape),
           taps_of(weights, "k_conv1d", "k_conv", shape),
           taps_of(weights, "v_conv1d", "v_conv", shape)},
      .decay_rate = decay_rates(weights, shape.heads),
      .step_bias = weights.vector("dt_bias", shape.width()),
      .lower_bound = options.lower_bound,
  };
  mx::eval(
      result.convolutions[0],
      result.convolutions[1],
      result.convolutions[2],
      result.decay_rate,
      result.step_bias
  );
  return result;
}

std::vector<MergedLinear::Part> kda_inputs(const Weights& weights, const KdaOptions& options) {
  const kernels::KdaShape& shape = options.shape;
  const int gate = options.whole_gates ? shape.width() : shape.head_dim;
  return {
      {weights / "q_proj", shape.width()},
      {weights / "k_proj", shape.width()},
      {weights / "v_proj", shape.width()},
      {weights / (options.whole_gates ? "f_proj" : "f_a_proj"), gate},
      {weights / (options.whole_gates ? "g_proj" : "g_a_proj"), gate},
      {weights / "b_proj", shape.heads},
  };
}

}  // namespace

Kda::Kda(const Weights& weights, const KdaOptions& options)
    : shape_(options.shape),
      inputs_(kda_inputs(weights, options), options.hidden),
      weights_(kda_weights(weights, options)),
      norm_(weights / "o_norm", shape_.head_dim, options.norm, shape_.heads),
      output_(weights / "o_proj", shape_.width(), options.hidden) {
  if (!options.whole_gates) {
    steps_.emplace(weights / "f_b_proj", shape_.head_dim, shape_.width());
    gate_.emplace(weights / "g_b_proj", shape_.head_dim, shape_.width());
  }
}

mx::array Kda::operator()(const mx::array& x, ForwardContext& context, int layer) const {
  return output_(attend(x, context, layer), context.adapters());
}

kernels::ResidualNorm Kda::add_to(
    const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
) const {
  return output_.add_to(target, attend(x, context, layer), context.adapters());
}

std::size_t Kda::nbytes() const {
  const std::size_t gates = steps_ ? steps_->nbytes() + gate_->nbytes() : 0;
  return inputs_.nbytes() + gates + output_.nbytes();
}

mx::array Kda::attend(const mx::array& x, ForwardContext& context, int layer) const {
  const RowContext& adapters = context.adapters();
  const auto parts = inputs_.split(x, adapters);
  const kernels::KdaInputs inputs{
      .rows = {parts[0], parts[1], parts[2]},
      .steps = steps_ ? (*steps_)(parts[3], adapters) : parts[3],
      .shares = parts[5],
  };
  const auto spans = recurrent_spans(context, layer);
  auto result = kernels::kda(inputs, weights_, shape_, spans);
  const auto replay =
      [inputs, weights = weights_, shape = shape_](const kernels::RecurrentSpan& span, int count) {
        const auto own = [&](const mx::array& rows) { return rows_of(rows, span, count); };
        const kernels::KdaInputs cut{
            .rows = {own(inputs.rows[0]), own(inputs.rows[1]), own(inputs.rows[2])},
            .steps = own(inputs.steps),
            .shares = own(inputs.shares),
        };
        return kernels::kda(cut, weights, shape, {{0, count, span.state}}).states.front();
      };
  advance_states(context, layer, spans, std::move(result.states), replay);
  const mx::Shape heads{x.shape(0), shape_.heads, shape_.head_dim};
  const auto normed = norm_(mx::reshape(result.rows, heads), adapters);
  const auto gate = gate_ ? (*gate_)(parts[4], adapters) : parts[4];
  const auto gated =
      kernels::gated_activation(mx::reshape(gate, heads), normed, kernels::Activation::kLogistic);
  return mx::reshape(gated, {x.shape(0), shape_.width()});
}

}  // namespace saker::nn
