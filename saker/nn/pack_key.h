// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which layers may be packed into one weight, and the same numbers in another dtype where they are
// packed all the same. Pure.

#include "saker/base/tensor.h"
#include "saker/kernels/weight_format.h"

#include <optional>

namespace saker::nn {

// What layers must have in common to be packed into one weight.
struct PackKey {
  kernels::WeightFormat format;
  std::optional<DType> scales;  // Their dtype, of codes.

  bool operator==(const PackKey&) const = default;
};

PackKey pack_key(const kernels::WeightTensors& tensors, const kernels::WeightFormat& format);

// The same numbers as float32. Throws kCorruptData for what are no floats.
Tensor as_float32(const Tensor& tensor);

}  // namespace saker::nn
