// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/linear.h"

#include "saker/base/error.h"
#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/ops/linear.h"
#include "saker/nn/weights/pack_key.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>

namespace saker::nn {
void check_linear_shape(
    const kernels::WeightTensors& tensors,
    const kernels::WeightFormat& format,
    int inputs,
    int outputs
) {
  const std::int64_t columns = kernels::stored_elements(format, inputs);
  require(
      tensors.weight.shape == std::vector<std::int64_t>{outputs, columns},
      ErrorCode::kCorruptData,
      "[{}] shape [{}], expected [{}, {}] as the configuration says",
      tensors.name,
      fmt::join(tensors.weight.shape, ", "),
      outputs,
      columns
  );
}

kernels::PackedWeight pack_linear(const Weights& weights, int inputs, int outputs) {
  const auto tensors = weights.linear_tensors();
  const auto format = weights.linear_format(inputs);
  check_linear_shape(tensors, format, inputs, outputs);
  return kernels::PackedWeight::pack({tensors}, format);
}

namespace {

kernels::PackedWeight widened(const kernels::PackedWeight& weight) {
  const auto values = std::make_shared<mx::array>(mx::contiguous(weight.dequantized()));
  values->eval();
  Tensor tensor;
  tensor.dtype = DType::kFloat32;
  tensor.shape = {weight.rows(), weight.columns()};
  tensor.data = std::shared_ptr<const std::byte>(values, values->data<std::byte>());
  const kernels::WeightTensors tensors{.weight = tensor, .scales = {}, .biases = {}};
  return kernels::PackedWeight::pack({tensors}, {.kind = kernels::WeightKind::kFloat32});
}

// The biases side by side, zeros where a part has none.
mx::array joined_bias(const std::vector<MergedLinear::Part>& parts) {
  std::vector<mx::array> biases;
  biases.reserve(parts.size());
  for (const auto& part : parts) {
    biases.push_back(
        part.weights.has("bias") ? part.weights.vector("bias", part.outputs)
                                 : mx::zeros({part.outputs}, mx::float32)
    );
  }
  auto bias = mx::concatenate(biases, 0);
  mx::eval(bias);
  return bias;
}

}  // namespace

Linear::Linear(const Weights& weights, int inputs, int outputs)
    : weight_(pack_linear(weights, inputs, outputs)), module_{weights.path("")} {
  if (weights.has("bias")) {
    bias_ = weights.vector("bias", outputs);
  }
  weights.add_module({
      .path = module_.path,
      .inputs = inputs,
      .outputs = outputs,
      .weight = weight_,
      .bias = bias_,
      .norm = {},
  });
}

Linear Linear::in_float32(const Weights& weights, int inputs, int outputs) {
  Linear layer(weights, inputs, outputs);
  if (layer.weight_.format().kind != kernels::WeightKind::kFloat32) {
    layer.weight_ = widened(layer.weight_);
  }
  return layer;
}

Linear::Linear(const Weights& scope, kernels::PackedWeight shared)
    : weight_(std::move(shared)), module_{scope.path("")} {
  scope.add_module({
      .path = module_.path,
      .inputs = weight_.columns(),
      .outputs = weight_.rows(),
      .weight = weight_,
      .bias = {},
      .norm = {},
  });
}

mx::array Linear::operator()(const mx::array& x, const RowContext& adapters) const {
  adapters.observe(x, {&module_, 1});
  const auto y = kernels::linear(x, weight_, bias_, adapters.int8_rows());
  return adapters.change(y, x, {&module_, 1});
}

kernels::ResidualNorm Linear::add_to(
    const ResidualTarget& target, const mx::array& x, const RowContext& adapters
) const {
  const auto own = projection(adapters);
  if (!own) {
    return target.add((*this)(x, adapters), adapters);
  }
  const auto next = target.next();
  return target.norm.changed(kernels::linear_block(x, *own, next), adapters);
}

std::optional<kernels::Projection> Linear::projection(const RowContext& adapters) const {
  if (adapters.is_observed() || adapters.changes({&module_, 1})) {
    return std::nullopt;
  }
  return kernels::Projection{{&weight_, 1}, bias_, adapters.int8_rows()};
}

MergedLinear::MergedLinear(const std::vector<Part>& parts, int inputs) {
  std::vector<PackKey> keys;
  std::int64_t total = 0;
  for (const auto& part : parts) {
    const auto tensors = part.weights.linear_tensors();
    const auto format = part.weights.linear_format(inputs);
    check_linear_shape(tensors, format, inputs, part.outputs);
    keys.push_back(pack_key(tensors, format));
    outputs_.push_back(part.outputs);
    total += part.outputs;
  }
  require(
      total <= std::numeric_limits<int>::max(),
      ErrorCode::kUnsupported,
      "[{}] {} outputs in one product",
      parts.front().weights.path("weight"),
      total
  );
  if (std::ranges::any_of(parts, [](const Part& part) { return part.weights.has("bias"); })) {
    bias_ = joined_bias(parts);
  }
  if (std::ranges::adjacent_find(keys, std::ranges::not_equal_to{}) == keys.end()) {
    add_weight(parts, keys.front().format, 0);
    return;
  }
  int column = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    add_weight({&parts[i], 1}, keys[i].format, column);
    column += parts[i].outputs;
  }
}

void MergedLinear::add_weight(
    std::span<const Part> parts, const kernels::WeightFormat& format, int first_column
) {
  std::vector<kernels::WeightTensors> tensors;
  tensors.reserve(parts.size());
  for (const Part& part : parts) {
    tensors.push_back(part.weights.linear_tensors());
  }
  const auto& weight = weights_.emplace_back(kernels::PackedWeight::pack(tensors, format));
  int row = 0;
  for (const Part& part : parts) {
    modules_.push_back({part.weights.path(""), first_column + row});
    part.weights.add_module({
        .path = part.weights.path(""),
        .inputs = weight.columns(),
        .outputs = part.outputs,
        .weight = weight,
        .first_row = row,
        .bias = part.weights.has("bias") ? std::optional(part.weights.vector("bias", part.outputs))
                                         : std::nullopt,
        .norm = {},
    });
    row += part.outputs;
  }
}

mx::array MergedLinear::operator()(const mx::array& x, const RowContext& adapters) const {
  adapters.observe(x, modules_);
  const kernels::Projection projection{weights_, bias_, adapters.int8_rows()};
  return adapters.change(kernels::linear(x, projection), x, modules_);
}

std::vector<mx::array> MergedLinear::split(const mx::array& x, const RowContext& adapters) const {
  std::vector<mx::array> results;
  results.reserve(outputs_.size());
  const auto merged = (*this)(x, adapters);
  int first = 0;
  for (const int outputs : outputs_) {
    results.push_back(mx::slice(merged, {0, first}, {merged.shape(0), first + outputs}));
    first += outputs;
  }
  return results;
}

std::optional<kernels::Projection> MergedLinear::projection(const RowContext& adapters) const {
  if (adapters.is_observed() || adapters.changes(modules_)) {
    return std::nullopt;
  }
  return kernels::Projection{weights_, bias_, adapters.int8_rows()};
}

std::size_t MergedLinear::nbytes() const {
  return std::transform_reduce(
      weights_.begin(),
      weights_.end(),
      std::size_t{0},
      std::plus{},
      [](const kernels::PackedWeight& weight) { return weight.nbytes(); }
  );
}

}  // namespace saker::nn
