// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/layer_inputs.h"

#include <cmath>

namespace saker::nn {
namespace {

// With these options, the norm of x equals that of x / sqrt(hidden) with `norm.eps`.
NormOptions unscaled(const LayerInputOptions& options) {
  NormOptions norm = options.norm;
  norm.eps *= static_cast<float>(options.hidden);
  return norm;
}

}  // namespace

LayerInputs::LayerInputs(const Weights& weights, const LayerInputOptions& options)
    : options_(options),
      table_(weights / "embed_tokens_per_layer", options.vocab_size, options.layers * options.size),
      projection_(
          weights / "per_layer_model_projection", options.hidden, options.layers * options.size
      ),
      norm_(
          weights / "per_layer_projection_norm", options.size, unscaled(options), options.layers
      ) {}

mx::array LayerInputs::operator()(
    const mx::array& ids, const mx::array& embedded, const RowContext& adapters
) const {
  const mx::Shape shape = {ids.shape(0), options_.layers, options_.size};
  const auto projected = norm_(mx::reshape(projection_(embedded, adapters), shape), adapters);
  const float scale = std::sqrt(static_cast<float>(options_.size));
  const auto rows = mx::reshape(table_(ids, scale, adapters), shape);
  return mx::multiply(mx::add(projected, rows), mx::array(std::sqrt(0.5F), rows.dtype()));
}

LayerInputGate::LayerInputGate(const Weights& weights, const LayerInputOptions& options)
    : activation_(options.activation),
      gate_(weights / "per_layer_input_gate", options.hidden, options.size),
      projection_(weights / "per_layer_projection", options.size, options.hidden),
      norm_(weights / "post_per_layer_input_norm", options.hidden, options.norm) {}

mx::array LayerInputGate::operator()(
    const mx::array& x, const mx::array& inputs, const RowContext& adapters
) const {
  const auto gate = mx::reshape(gate_(x, adapters), inputs.shape());
  const auto gated = kernels::gated_activation(gate, inputs, activation_);
  const auto rows = mx::reshape(gated, {x.shape(0), inputs.shape(2)});
  return norm_(projection_(rows, adapters), adapters);
}

}  // namespace saker::nn
