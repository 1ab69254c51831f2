// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/gated_delta_net.h"

#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/recurrent/delta_block.h"
#include "saker/nn/recurrent_rows.h"

#include <algorithm>
#include <numeric>
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

// The pass's spans with this layer's states.
std::vector<kernels::DeltaSpan> delta_spans(const ForwardContext& context, int layer) {
  std::vector<kernels::DeltaSpan> spans;
  for (const auto& span : recurrent_spans(context, layer)) {
    spans.push_back({span.first_row, span.row_count, {span.state[0], span.state[1]}});
  }
  return spans;
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
  const auto& adapters = context.adapters();
  const auto inputs = inputs_.projection(adapters);
  const auto output = output_.projection(adapters);
  const auto rows = recurrent_spans(context, layer);
  const auto spans = delta_spans(context, layer);
  const bool is_whole = inputs && output && order_.empty() && adapters.base_only() &&
                        std::ranges::none_of(rows, is_replayed);
  if (is_whole) {
    const auto next = target.next();
    const kernels::DeltaBlock block{
        *inputs, weights_, shape_, spans, norm_.weight(), norm_.eps(), *output
    };
    if (kernels::runs_delta_block(x, block, next)) {
      auto result = kernels::delta_block(x, block, next);
      const auto caches = context.recurrent(layer);
      for (std::size_t i = 0; i < caches.size(); ++i) {
        auto& state = result.states[i];
        caches[i]->advance(
            spans[i].row_count, {std::move(state.inputs), std::move(state.memory)}, nullptr
        );
      }
      return target.norm.changed(std::move(result.rows), adapters);
    }
  }
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
  const auto spans = delta_spans(context, layer);
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
