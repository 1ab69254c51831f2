// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/latent/latent_weights.h"

#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/storage/packed_weight.h"
#include "saker/nn/linear.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace saker::nn {
namespace {

using HeadTensors = std::vector<std::vector<kernels::WeightTensors>>;

// Weights that are stacked by head, as MLX stores them.
kernels::ExpertWeights read_stacked(const Weights& scope, int heads, int inputs, int outputs) {
  auto stack = scope.stacked_tensors(heads);
  const auto format = scope.linear_format(inputs);
  HeadTensors by_head;
  by_head.reserve(stack.size());
  for (auto& tensors : stack) {
    check_linear_shape(tensors, format, inputs, outputs);
    by_head.push_back({std::move(tensors)});
  }
  return kernels::ExpertWeights::pack(by_head, format);
}

// Rows [first, first + count) of a tensor. Mapped pages leave memory with the tensor's last row.
Tensor rows_of(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  Tensor rows;
  rows.dtype = tensor.dtype;
  rows.shape = tensor.shape;
  rows.shape.front() = count;
  const std::size_t row_bytes = rows.nbytes() / static_cast<std::size_t>(count);
  rows.data = std::shared_ptr<const std::byte>(
      tensor.data, tensor.data.get() + static_cast<std::size_t>(first) * row_bytes
  );
  if (first + count == tensor.shape.front()) {
    rows.release = tensor.release;
  }
  return rows;
}

kernels::WeightTensors rows_of(
    const kernels::WeightTensors& tensors, std::int64_t first, std::int64_t count
) {
  const auto part = [&](const std::optional<Tensor>& tensor) {
    return tensor ? std::optional(rows_of(*tensor, first, count)) : std::nullopt;
  };
  return {
      .weight = rows_of(tensors.weight, first, count),
      .scales = part(tensors.scales),
      .biases = part(tensors.biases),
      .name = tensors.name,
  };
}

// The format of transposed weights.
kernels::WeightFormat float_format(
    const kernels::WeightTensors& tensors, const kernels::WeightFormat& format
) {
  if (format.bits == 0 && !kernels::is_block(format.kind)) {
    return format;
  }
  const bool wide = tensors.scales && tensors.scales->dtype == DType::kFloat32;
  return {.kind = wide ? kernels::WeightKind::kFloat32 : kernels::WeightKind::kBFloat16};
}

Tensor to_tensor(const mx::array& values, kernels::WeightKind kind) {
  const bool wide = kind == kernels::WeightKind::kFloat32;
  const bool half = kind == kernels::WeightKind::kFloat16;
  const auto dtype = wide ? mx::float32 : half ? mx::float16 : mx::bfloat16;
  const auto stored = std::make_shared<mx::array>(mx::contiguous(mx::astype(values, dtype)));
  stored->eval();
  Tensor tensor;
  tensor.dtype = wide ? DType::kFloat32 : half ? DType::kFloat16 : DType::kBFloat16;
  tensor.shape = {values.shape(0), values.shape(1)};
  const auto* bytes = reinterpret_cast<const std::byte*>(stored->data<void>());
  tensor.data = std::shared_ptr<const std::byte>(stored, bytes);
  return tensor;
}

LatentWeights split(const Weights& scope, const LatentOptions& options) {
  const auto tensors = scope.linear_tensors();
  const auto format = scope.linear_format(options.rank);
  const int head_rows = options.plain_dim + options.value_dim;
  check_linear_shape(tensors, format, options.rank, options.heads * head_rows);
  const auto turned = float_format(tensors, format);
  HeadTensors keys;
  HeadTensors values;
  for (std::int64_t head = 0; head < options.heads; ++head) {
    const auto of_keys = rows_of(tensors, head * head_rows, options.plain_dim);
    const auto packed = kernels::PackedWeight::pack({of_keys}, format);
    keys.push_back({{
        .weight = to_tensor(mx::transpose(packed.dequantized()), turned.kind),
        .scales = {},
        .biases = {},
        .name = tensors.name,
    }});
    values.push_back({rows_of(tensors, head * head_rows + options.plain_dim, options.value_dim)});
  }
  return {
      kernels::ExpertWeights::pack(keys, turned),
      kernels::ExpertWeights::pack(values, format),
  };
}

}  // namespace

LatentWeights latent_weights(const Weights& weights, const LatentOptions& options) {
  if ((weights / "kv_b_proj").has("weight")) {
    return split(weights / "kv_b_proj", options);
  }
  return {
      read_stacked(weights / "embed_q", options.heads, options.plain_dim, options.rank),
      read_stacked(weights / "unembed_out", options.heads, options.rank, options.value_dim),
  };
}

}  // namespace saker::nn
