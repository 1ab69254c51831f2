// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/gated_delta_net.h"

#include "saker/kernels/ops/activation.h"

#include <numeric>
#include <utility>
#include <vector>

namespace saker::nn {
namespace {

// The kernel of a depthwise convolution; checkpoints have [C, taps, 1] or [C, 1, taps].
mx::array convolution(const Weights& weights, const kernels::DeltaShape& shape) {
  const auto found = weights.find("weight");
  const bool last = found && !found->shape.empty() && found->shape.back() == shape.taps;
  const auto values = last ? weights.array("weight", {shape.channels(), 1, shape.taps})
                           : weights.array("weight", {shape.channels(), shape.taps, 1});
  return mx::contiguous(mx::transpose(mx::reshape(values, {shape.channels(), shape.taps})));
}

kernels::DeltaWeights delta_weights(const Weights& weights, const kernels::DeltaShape& shape) {
  kernels::DeltaWeights result{
      convolution(weights / "conv1d", shape),
      mx::exp(weights.vector("A_log", shape.value_heads)),
      weights.vector("dt_bias", shape.value_heads),
  };
  mx::eval(result.convolution, result.decay_rate, result.step_bias);
  return result;
}

bool joins_z(const Weights& weights) {
  return (weights / "in_proj_qkvz").has("weight");
}

bool joins_gates(const Weights& weights) {
  return (weights / "in_proj_ba").has("weight");
}

std::vector<MergedLinear::Part> input_parts(
    const Weights& weights, const kernels::DeltaShape& shape
) {
  std::vector<MergedLinear::Part> parts;
  if (joins_z(weights)) {
    parts.push_back({weights / "in_proj_qkvz", shape.channels() + shape.outputs()});
  } else {
    parts.push_back({weights / "in_proj_qkv", shape.channels()});
    parts.push_back({weights / "in_proj_z", shape.outputs()});
  }
  if (joins_gates(weights)) {
    parts.push_back({weights / "in_proj_ba", 2 * shape.value_heads});
  } else {
    parts.push_back({weights / "in_proj_b", shape.value_heads});
    parts.push_back({weights / "in_proj_a", shape.value_heads});
  }
  return parts;
}

// Columns of groups that follow each other, one part of each: those of all key heads.
class GroupColumns {
 public:
  GroupColumns(int first, int groups, std::vector<int> parts)
      : first_(first), groups_(groups), parts_(std::move(parts)) {}

  void add_to(std::vector<kernels::ColumnRange>& order) const {
    const int width = std::accumulate(parts_.begin(), parts_.end(), 0);
    int at = first_;
    for (const int part : parts_) {
      for (int group = 0; group < groups_; ++group) {
        order.push_back({at + group * width, part});
      }
      at += part;
    }
  }

 private:
  int first_;
  int groups_;
  std::vector<int> parts_;
};

std::vector<kernels::ColumnRange> output_order(
    const Weights& weights, const kernels::DeltaShape& shape
) {
  std::vector<kernels::ColumnRange> order;
  if (!joins_z(weights) && !joins_gates(weights)) {
    return order;
  }
  const int ratio = shape.value_heads / shape.key_heads;
  const int values = ratio * shape.value_dim;
  const int gates_at = shape.channels() + shape.outputs();
  if (joins_z(weights)) {
    GroupColumns(0, shape.key_heads, {shape.key_dim, shape.key_dim, values, values}).add_to(order);
  } else {
    order.push_back({0, gates_at});
  }
  if (joins_gates(weights)) {
    GroupColumns(gates_at, shape.key_heads, {ratio, ratio}).add_to(order);
  } else {
    order.push_back({gates_at, 2 * shape.value_heads});
  }
  return order;
}

}  // namespace

GatedDeltaNet::GatedDeltaNet(const Weights& weights, const GatedDeltaOptions& options)
    : shape_(options.shape),
      inputs_(input_parts(weights, shape_), options.hidden),
      order_(output_order(weights, shape_)),
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

std::vector<mx::array> GatedDeltaNet::project(const mx::array& x, const RowContext& adapters)
    const {
  if (order_.empty()) {
    return inputs_.split(x, adapters);
  }
  const auto y = kernels::arrange_columns(inputs_(x, adapters), order_);
  std::vector<mx::array> parts;
  int first = 0;
  for (const int width :
       {shape_.channels(), shape_.outputs(), shape_.value_heads, shape_.value_heads}) {
    parts.push_back(mx::slice(y, {0, first}, {y.shape(0), first + width}));
    first += width;
  }
  return parts;
}

mx::array GatedDeltaNet::attend(const mx::array& x, ForwardContext& context, int layer) const {
  const int rows = x.shape(0);
  const auto parts = project(x, context.adapters());
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
