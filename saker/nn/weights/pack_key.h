// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides which layers may be packed into one weight, and converts tensors to another dtype for
// that. Pure.

#include "saker/base/tensor.h"
#include "saker/kernels/layout/weight_format.h"

#include <optional>

namespace saker::nn {

// Layers with equal keys may be packed into one weight.
struct PackKey {
  kernels::WeightFormat format;
  std::optional<DType> scales;  // Dtype of the scales; codes only.

  bool operator==(const PackKey&) const = default;
};

PackKey pack_key(const kernels::WeightTensors& tensors, const kernels::WeightFormat& format);

// The tensor as float32. Throws kCorruptData for tensors that are no floats.
Tensor as_float32(const Tensor& tensor);

}  // namespace saker::nn
