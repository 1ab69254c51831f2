// SPDX-License-Identifier: Apache-2.0
#pragma once

// One module's tensors with an adapter's change in them.

#include "saker/adapters/adapter_source.h"
#include "saker/kernels/storage/packed_weight.h"
#include "saker/nn/weights/weights.h"

#include <optional>
#include <string_view>

namespace saker::adapters {

// The inputs of one fused module.
struct FusedModule {
  nn::Module base;
  kernels::WeightFormat format = {};  // The base weight's.
  ModuleSource change;
  float strength = 1.0F;
  // 0: as many rows as the base. Otherwise this many, all from the change's weight, at strength 1.
  int resized_rows = 0;

  int rows() const { return resized_rows > 0 ? resized_rows : base.outputs; }
};

// The weight in the form of `like`, the base's tensors. REQUIRES: the base's weight is loaded,
// unless it is a norm's or resized.
kernels::WeightTensors fused_weight(const FusedModule& module, const kernels::WeightTensors& like);

// Empty if neither the base nor the adapter has one. The result has this `dtype`. Needs no weight.
std::optional<Tensor> fused_bias(const FusedModule& module, DType dtype);

// The change without parts that equal the base: PEFT also saves weights that were not trained.
ModuleSource without_equals(const ModuleSource& change, const nn::Module& base);

}  // namespace saker::adapters
