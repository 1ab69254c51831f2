// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/decoder_stack.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

#include <algorithm>
#include <optional>
#include <variant>

namespace saker::nn {
namespace {

void capture(ForwardContext& context, int layer, const mx::array& rows) {
  if (std::ranges::find(context.captured_layers, layer) != context.captured_layers.end()) {
    context.captured.insert_or_assign(layer, rows);
  }
}

void check_captured_layers(const ForwardContext& context, std::size_t layer_count) {
  const int count = static_cast<int>(layer_count);
  for (const int layer : context.captured_layers) {
    require(
        layer >= -1 && layer <= count,
        ErrorCode::kInvalidArgument,
        "[forward] tap of layer {}, expected -1 (the embedding) to {} (the final norm)",
        layer,
        count
    );
  }
}

// MLX builds a whole pass before it runs anything. To overlap the two, we start layers early. A
// short pass starts after two layers, if there are more; CPU only, since a GPU gains nothing. A
// long pass starts after every layer on CPU and every second one on GPU. On CPU it also waits for
// the layer before: MLX allocates a result when it queues the operation, up to a hundred operations
// ahead. That is the memory of many layers.
void start_layers(
    ForwardContext& context, const kernels::ResidualNorm& state, std::size_t built, std::size_t all
) {
  constexpr int kLongPass = 64;
  constexpr std::size_t kFewLayers = 2;
  const bool on_cpu = kernels::on_cpu();
  const bool long_pass = context.row_count() >= kLongPass;
  const bool starts =
      long_pass ? on_cpu || built % kFewLayers == 0 : on_cpu && built == kFewLayers && built < all;
  if (starts) {
    context.started.start(state.sum, state.normed);
  }
  if (on_cpu && long_pass) {
    context.started.wait_until(1);
  }
}

// Applies a fork: replaces the tokens by copies.
void fork_rows(
    ForwardContext& context, kernels::ResidualNorm& state, std::optional<mx::array>& layer_inputs
) {
  const auto rows = context.fork();
  state = {mx::take(state.sum, rows, 0), mx::take(state.normed, rows, 0)};
  if (layer_inputs) {
    layer_inputs = mx::take(*layer_inputs, rows, 0);
  }
}

// One layer's part of all layers' inputs [N, layers, P]: [N, 1, P].
mx::array inputs_of(const mx::array& layer_inputs, int layer) {
  return mx::slice(
      layer_inputs, {0, layer, 0}, {layer_inputs.shape(0), layer + 1, layer_inputs.shape(2)}
  );
}

// Runs attention, or what takes its place, and adds its output to the stream.
kernels::ResidualNorm mix_tokens(
    const DecoderLayer& layer,
    const kernels::ResidualNorm& state,
    ForwardContext& context,
    int index
) {
  const auto& adapters = context.adapters();
  const ResidualTarget target{state.sum, layer.mlp_norm};
  const auto run = [&](const auto& part) {
    if (!layer.attention_output_norm) {
      return part.add_to(target, state.normed, context, index);
    }
    const auto output = part(state.normed, context, index);
    return target.add((*layer.attention_output_norm)(output, adapters), adapters);
  };
  return std::visit(run, layer.attention);
}

// Runs the MLP and what follows it, up to the norm of the next layer.
kernels::ResidualNorm feed_forward(
    const DecoderLayer& layer,
    const kernels::ResidualNorm& state,
    const std::optional<mx::array>& inputs,
    const RowContext& adapters,
    const RmsNorm& next
) {
  const auto run = [&](const auto& part) {
    const ResidualTarget target{state.sum, next, layer.scale};
    if (!layer.mlp_output_norm && !layer.input_gate) {
      return part.add_to(target, state.normed, adapters);
    }
    auto output = part(state.normed, adapters);
    if (layer.mlp_output_norm) {
      output = (*layer.mlp_output_norm)(output, adapters);
    }
    if (!layer.input_gate) {
      return target.add(output, adapters);
    }
    const auto sum = mx::add(state.sum, output);
    const auto gated = (*layer.input_gate)(sum, inputs.value(), adapters);
    return next.add(sum, gated, adapters, layer.scale);
  };
  return std::visit(run, layer.mlp);
}

}  // namespace

std::size_t DecoderLayer::nbytes() const {
  const auto bytes = [](const auto& part) { return part.nbytes(); };
  return std::visit(bytes, attention) + std::visit(bytes, mlp) +
         (input_gate ? input_gate->nbytes() : 0);
}

DecoderStack::DecoderStack(std::vector<DecoderLayer> layers, RmsNorm final_norm)
    : layers_(std::move(layers)), final_norm_(std::move(final_norm)) {}

mx::array DecoderStack::operator()(
    const mx::array& embedded, ForwardContext& context, std::optional<mx::array> layer_inputs
) const {
  check_captured_layers(context, layers_.size());
  capture(context, -1, embedded);
  kernels::ResidualNorm state{
      embedded, layers_.front().attention_norm(embedded, context.adapters())
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    const int index = static_cast<int>(i);
    if (context.forks_before(index)) {
      fork_rows(context, state, layer_inputs);
    }
    state = mix_tokens(layer, state, context, index);
    const auto inputs =
        layer.input_gate ? std::optional(inputs_of(layer_inputs.value(), index)) : std::nullopt;
    const auto& next = i + 1 < layers_.size() ? layers_[i + 1].attention_norm : final_norm_;
    state = feed_forward(layer, state, inputs, context.adapters(), next);
    capture(context, index, state.sum);
    start_layers(context, state, i + 1, layers_.size());
  }
  capture(context, static_cast<int>(layers_.size()), state.normed);
  return state.normed;
}

std::size_t DecoderStack::nbytes() const {
  std::size_t total = 0;
  for (const auto& layer : layers_) {
    total += layer.nbytes();
  }
  return total;
}

}  // namespace saker::nn
