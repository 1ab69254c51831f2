// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/recurrent/mamba2.h"

#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/norm.h"
#include "saker/nn/recurrent_rows.h"

#include <algorithm>
#include <array>
#include <utility>

namespace saker::nn {
namespace {

kernels::ScanWeights scan_weights(const Weights& weights, const Mamba2Options& options) {
  const kernels::ScanShape& shape = options.shape;
  kernels::ScanWeights result{
      .convolution = depthwise_convolution(weights / "conv1d", shape.channels(), shape.taps),
      .decay_rate = mx::exp(weights.vector("A_log", shape.heads)),
      .step_bias = weights.vector("dt_bias", shape.heads),
      .skip = weights.vector("D", shape.heads),
      .min_step = options.min_step,
      .max_step = options.max_step,
  };
  mx::eval(result.decay_rate, result.step_bias, result.skip);
  return result;
}

mx::array part_of(const mx::array& x, int first, int count) {
  return mx::slice(x, {0, first}, {x.shape(0), first + count});
}

std::optional<mx::array> input_factors(const Mamba2Options& options) {
  const auto& scales = options.input_scales;
  if (std::ranges::all_of(scales, [](float scale) { return scale == 1.0F; })) {
    return std::nullopt;
  }
  const auto counts = options.input_counts();
  std::vector<mx::array> parts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    parts.push_back(mx::full({counts[i]}, scales[i]));
  }
  auto factors = mx::concatenate(parts);
  mx::eval(factors);
  return factors;
}

}  // namespace

Mamba2::Mamba2(const Weights& weights, const Mamba2Options& options)
    : options_(options),
      input_(
          weights / "in_proj",
          options.hidden,
          options.shape.outputs() + options.shape.channels() + options.shape.heads
      ),
      weights_(scan_weights(weights, options)),
      input_factors_(input_factors(options)),
      output_(weights / "out_proj", options.shape.outputs(), options.hidden) {
  const int outputs = options.shape.outputs();
  if (options.norm_groups == 1) {
    norm_.emplace(weights / "norm", outputs, options.norm);
  } else if (options.norm_groups > 1) {
    group_factors_ = (weights / "norm").vector("weight", outputs);
  }
}

mx::array Mamba2::operator()(const mx::array& x, ForwardContext& context, int layer) const {
  return output_(scanned(x, context, layer), context.adapters());
}

kernels::ResidualNorm Mamba2::add_to(
    const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
) const {
  return output_.add_to(target, scanned(x, context, layer), context.adapters());
}

mx::array Mamba2::scanned(const mx::array& x, ForwardContext& context, int layer) const {
  const kernels::ScanShape& shape = options_.shape;
  auto all = input_(x, context.adapters());
  if (input_factors_) {
    all = mx::multiply(all, mx::astype(*input_factors_, all.dtype()));
  }
  const auto gate = part_of(all, 0, shape.outputs());
  const kernels::ScanInputs inputs{
      part_of(all, shape.outputs(), shape.channels()),
      part_of(all, shape.outputs() + shape.channels(), shape.heads),
  };
  const auto spans = recurrent_spans(context, layer);
  auto result = kernels::selective_scan(inputs, weights_, shape, spans);
  const auto replay = [inputs,
                       weights = weights_,
                       shape](const kernels::RecurrentSpan& span, int count) {
    const kernels::ScanInputs own{
        rows_of(inputs.rows, span, count), rows_of(inputs.steps, span, count)
    };
    return kernels::selective_scan(own, weights, shape, {{0, count, span.state}}).states.front();
  };
  advance_states(context, layer, spans, std::move(result.states), replay);
  return gated(result.rows, gate, context.adapters());
}

mx::array Mamba2::gated(const mx::array& rows, const mx::array& gate, const RowContext& adapters)
    const {
  const auto apply = [&](const mx::array& values) {
    const mx::Shape one = {values.shape(0), 1, values.shape(1)};
    const auto product = kernels::gated_activation(
        mx::reshape(gate, one), mx::reshape(values, one), kernels::Activation::kSilu
    );
    return mx::reshape(product, values.shape());
  };
  return options_.norm_before_gate ? apply(normed(rows, adapters)) : normed(apply(rows), adapters);
}

mx::array Mamba2::normed(const mx::array& rows, const RowContext& adapters) const {
  if (norm_) {
    return (*norm_)(rows, adapters);
  }
  if (!group_factors_) {
    return rows;
  }
  const int width = rows.shape(1) / options_.norm_groups;
  const auto groups = mx::reshape(rows, {rows.shape(0), options_.norm_groups, width});
  const auto units = mx::ones({width}, mx::float32);
  const auto result =
      mx::reshape(kernels::rms_norm(groups, units, options_.norm.eps), rows.shape());
  return mx::astype(mx::multiply(result, *group_factors_), rows.dtype());
}

}  // namespace saker::nn
