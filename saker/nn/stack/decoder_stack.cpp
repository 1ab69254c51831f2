// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/stack/decoder_stack.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <type_traits>
#include <utility>
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
// short pass starts after 1, 2, 4, ... layers; CPU only, since a GPU gains nothing. So little is
// built before the first layer runs, and no thread is left without a layer while others are built. A
// long pass starts after every layer on CPU and every second one on GPU. On CPU it also waits for
// the layer before: MLX allocates a result when it queues the operation, up to a hundred operations
// ahead. That is the memory of many layers.
void start_layers(
    ForwardContext& context, const kernels::ResidualNorm& state, std::size_t built, std::size_t all
) {
  constexpr int kLongPass = 64;
  constexpr std::size_t kGpuLayers = 2;
  const bool on_cpu = kernels::on_cpu();
  const bool long_pass = context.row_count() >= kLongPass;
  const bool starts = long_pass ? on_cpu || built % kGpuLayers == 0
                                : on_cpu && std::has_single_bit(built) && built < all;
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

// Where a part's output goes.
struct PartTarget {
  const Norm* next;  // For the rows that the next part reads; null: none.
  kernels::ResidualScales scales;
  const LayerInputGate* gate;       // Adds to the stream after this part; null: none.
  std::optional<mx::array> inputs;  // The gate's.
};

kernels::ResidualNorm add_output(
    const PartTarget& target,
    const mx::array& stream,
    const mx::array& output,
    const RowContext& adapters
) {
  return target.next != nullptr ? target.next->add(stream, output, adapters, target.scales)
                                : kernels::add_residual(stream, output, target.scales);
}

template <typename Mixer>
constexpr bool kMixesTokens =
    requires(const Mixer& mixer, const mx::array& x, ForwardContext& context) {
      mixer(x, context, 0);
    };

bool has_cache(const ResidualPart& part) {
  return std::visit(
      []<typename Mixer>(const Mixer&) {
        return kMixesTokens<Mixer> && !std::is_same_v<Mixer, SharedAttention>;
      },
      part.mixer
  );
}

// Runs a part and what follows it, up to the norm of the next part. `cache`: the index of the part's
// cache in every sequence.
kernels::ResidualNorm run_part(
    const ResidualPart& part,
    const kernels::ResidualNorm& state,
    const PartTarget& target,
    ForwardContext& context,
    int cache
) {
  const auto& adapters = context.adapters();
  const auto run = [&]<typename Mixer>(const Mixer& mixer) {
    if (target.next != nullptr && target.gate == nullptr && !part.output_norm) {
      const ResidualTarget fused{state.sum, *target.next, target.scales};
      if constexpr (kMixesTokens<Mixer>) {
        return mixer.add_to(fused, state.normed, context, cache);
      } else {
        return mixer.add_to(fused, state.normed, adapters);
      }
    }
    auto output = [&] {
      if constexpr (kMixesTokens<Mixer>) {
        return mixer(state.normed, context, cache);
      } else {
        return mixer(state.normed, adapters);
      }
    }();
    if (part.output_norm) {
      output = (*part.output_norm)(output, adapters);
    }
    if (target.gate == nullptr) {
      return add_output(target, state.sum, output, adapters);
    }
    const auto sum = mx::add(state.sum, output);
    const auto gated = (*target.gate)(sum, target.inputs.value(), adapters);
    return add_output(target, sum, gated, adapters);
  };
  return std::visit(run, part.mixer);
}

// Runs a layer's parts. `next`: the norm of the rows that the next layer reads. `cache`: the index
// of its first cache.
kernels::ResidualNorm run_layer(
    const DecoderLayer& layer,
    kernels::ResidualNorm state,
    const Norm* next,
    const std::optional<mx::array>& inputs,
    ForwardContext& context,
    int cache
) {
  for (std::size_t i = 0; i < layer.parts.size(); ++i) {
    const ResidualPart& part = layer.parts[i];
    const bool last = i + 1 == layer.parts.size();
    PartTarget target{next, {.residual = part.scale}, nullptr, {}};
    if (last) {
      target.scales.sum = layer.scale;
      target.gate = layer.input_gate ? &*layer.input_gate : nullptr;
      target.inputs = inputs;
    } else {
      const auto& following = layer.parts[i + 1].norm;
      target.next = following ? &*following : nullptr;
    }
    const auto rows = state.normed;
    if (part.input_scale != 1.0F) {
      state.normed = mx::multiply(rows, mx::array(part.input_scale, rows.dtype()));
    }
    state = run_part(part, state, target, context, cache);
    cache += has_cache(part) ? 1 : 0;
    if (!last && layer.parts[i + 1].reads_same_rows) {
      state.normed = rows;
    }
  }
  return state;
}

}  // namespace

std::size_t DecoderLayer::nbytes() const {
  std::size_t total = input_gate ? input_gate->nbytes() : 0;
  for (const ResidualPart& part : parts) {
    total += std::visit([](const auto& mixer) { return mixer.nbytes(); }, part.mixer);
  }
  return total;
}

int DecoderLayer::cache_count() const {
  return static_cast<int>(std::ranges::count_if(parts, has_cache));
}

DecoderStack::DecoderStack(std::vector<DecoderLayer> layers, Norm final_norm)
    : layers_(std::move(layers)), final_norm_(std::move(final_norm)) {
  int count = 0;
  for (const DecoderLayer& layer : layers_) {
    first_caches_.push_back(count);
    count += layer.cache_count();
  }
}

mx::array DecoderStack::operator()(
    const mx::array& embedded, ForwardContext& context, std::optional<mx::array> layer_inputs
) const {
  check_captured_layers(context, layers_.size());
  capture(context, -1, embedded);
  const Norm* first = norm_of(0);
  kernels::ResidualNorm state{
      embedded, first != nullptr ? (*first)(embedded, context.adapters()) : embedded
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    const int index = static_cast<int>(i);
    if (context.forks_before(index)) {
      fork_rows(context, state, layer_inputs);
    }
    const auto inputs =
        layer.input_gate ? std::optional(inputs_of(layer_inputs.value(), index)) : std::nullopt;
    state = run_layer(layer, std::move(state), norm_of(i + 1), inputs, context, first_caches_[i]);
    capture(context, index, state.sum);
    start_layers(context, state, i + 1, layers_.size());
  }
  capture(context, static_cast<int>(layers_.size()), state.normed);
  return state.normed;
}

const Norm* DecoderStack::norm_of(std::size_t layer) const {
  if (layer == layers_.size()) {
    return &final_norm_;
  }
  const auto& norm = layers_[layer].parts.front().norm;
  return norm ? &*norm : nullptr;
}

std::size_t DecoderStack::nbytes() const {
  std::size_t total = 0;
  for (const auto& layer : layers_) {
    total += layer.nbytes();
  }
  return total;
}

}  // namespace saker::nn
