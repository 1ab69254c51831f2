// SPDX-License-Identifier: Apache-2.0
#pragma once

// One module's tensors with an adapter's change in them.

#include "saker/adapters/adapter_source.h"
#include "saker/kernels/packed_weight.h"
#include "saker/nn/weights.h"

#include <optional>
#include <string_view>

namespace saker::adapters {

// What a module becomes.
struct FusedModule {
  nn::Module base;
  kernels::WeightFormat format = {};  // Of the base's weight.
  ModuleSource change;
  float strength = 1.0F;
  // 0: as many as the base has. Else so many, all of the change's weight, at strength 1.
  int resized_rows = 0;

  int rows() const { return resized_rows > 0 ? resized_rows : base.outputs; }
};

// The weight in the form that `like`, the base's tensors, have. REQUIRES: the base's weight is
// there, unless it is a norm's or resized.
kernels::WeightTensors fused_weight(const FusedModule& module, const kernels::WeightTensors& like);

// None: neither the base nor the adapter has one. `dtype` is what it becomes. Needs no weight.
std::optional<Tensor> fused_bias(const FusedModule& module, DType dtype);

// Without what equals the base: PEFT saves weights that were not trained too.
ModuleSource without_equals(const ModuleSource& change, const nn::Module& base);

}  // namespace saker::adapters
