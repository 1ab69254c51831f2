// SPDX-License-Identifier: Apache-2.0
#pragma once

// What becomes of each tensor of a model that is converted, and the work of it, slice by slice.

#include "saker/base/tensor.h"
#include "saker/kernels/weight_format.h"
#include "saker/load/convert/mlx_weights.h"
#include "saker/load/importers/placeholder_tensors.h"
#include "saker/load/model_writer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace saker::load {

enum class StepKind : std::uint8_t {
  kCopy,
  kCast,    // To `dtype`.
  kEncode,  // Rounded to `dtype`, then to codes: outputs weight, scales and, for affine, biases.
  kDecode,  // Codes to `dtype`.
  kRecode,  // As kDecode to `decoded`, and what that gives as kEncode.
};

struct TensorStep {
  StepKind kind = StepKind::kCopy;
  ModelTensor source;
  std::optional<kernels::WeightFormat> codes;  // Of the source: kDecode, kRecode.
  std::optional<ModelTensor> scales;           // With `codes`.
  std::optional<ModelTensor> biases;           // With affine ones.
  kernels::WeightFormat format;                // Of the output: kEncode, kRecode.
  DType dtype = DType::kBFloat16;
  DType decoded = DType::kBFloat16;
  std::size_t output = 0;  // The writer's first tensor of this step; the others follow it.

  // Values of one part, and of all.
  std::int64_t part_elements() const;
  std::int64_t elements() const;
};

// What the writer has to write for the step, in order.
std::vector<PlannedTensor> outputs_of(const TensorStep& step);

// Does the steps on all threads of the kernels' pool. Tensors that are made, which `made` knows if
// there is one, are made as each slice needs them. `progress` as in ConvertOptions.
void run_steps(
    const std::vector<TensorStep>& steps,
    const importers::PlaceholderTensors* made,
    ModelWriter& writer,
    const std::function<void(std::int64_t done, std::int64_t total)>& progress
);

}  // namespace saker::load
