// SPDX-License-Identifier: Apache-2.0
#pragma once

// The steps of a conversion, one per tensor, and their execution, slice by slice.

#include "saker/base/tensor.h"
#include "saker/kernels/layout/weight_format.h"
#include "saker/load/convert/mlx_weights.h"
#include "saker/load/files/model_writer.h"
#include "saker/load/importers/placeholder_tensors.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace saker::load {

enum class StepKind : std::uint8_t {
  kCopy,
  kCast,    // To `dtype`.
  kEncode,  // Rounds to `dtype`, then encodes: outputs weight, scales and, for affine, biases.
  kDecode,  // Decodes to `dtype`.
  kRecode,  // As kDecode to `decoded`, then as kEncode.
};

struct TensorStep {
  StepKind kind = StepKind::kCopy;
  ModelTensor source;
  std::optional<kernels::WeightFormat> codes;  // The source's: kDecode, kRecode.
  std::optional<ModelTensor> scales;           // With `codes`.
  std::optional<ModelTensor> biases;           // With affine codes.
  kernels::WeightFormat format;                // The output's: kEncode, kRecode.
  // The columns' (ConvertOptions), for affine kEncode and kRecode. Empty: none is known.
  std::span<const float> importance;
  DType dtype = DType::kBFloat16;
  DType decoded = DType::kBFloat16;
  std::size_t output = 0;  // The first of the step's tensors in the writer.

  // Number of values in one part, and in all parts.
  std::int64_t part_elements() const;
  std::int64_t elements() const;
  // Number of values in a row, decoded.
  std::int64_t columns() const;
};

// The tensors that the step writes, in order.
std::vector<PlannedTensor> outputs_of(const TensorStep& step);

// Runs the steps on all threads of the kernels' pool. Lazy tensors, which `made` knows unless it is
// null, are made as each slice needs them. `progress` as in ConvertOptions.
void run_steps(
    const std::vector<TensorStep>& steps,
    const importers::PlaceholderTensors* made,
    ModelWriter& writer,
    const std::function<void(std::int64_t done, std::int64_t total)>& progress
);

}  // namespace saker::load
