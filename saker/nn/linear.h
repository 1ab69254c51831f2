// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear layers over named weights. A bias is added if its tensor exists. All tokens share one
// product; an adapter's change is added after it. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/blocks.h"
#include "saker/kernels/storage/packed_weight.h"
#include "saker/nn/norm.h"
#include "saker/nn/row_context.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace saker::nn {

// Throws kCorruptData naming the tensor unless `tensors` are an [outputs, inputs] layer. Checks
// columns of float weights only; packing checks the words of codes, since it knows the format.
void check_linear_shape(
    const kernels::WeightTensors& tensors,
    const kernels::WeightFormat& format,
    int inputs,
    int outputs
);

// The [outputs, inputs] weight of a scope. Throws kCorruptData naming the tensor for another shape.
kernels::PackedWeight pack_linear(const Weights& weights, int inputs, int outputs);

class Linear {
 public:
  // Throws kCorruptData naming the tensor unless the scope holds an [outputs, inputs] weight.
  Linear(const Weights& weights, int inputs, int outputs);
  // As above with weight, input and products in float32, whatever the checkpoint's dtype. For
  // layers that choose, such as routers: a rounded number can change the choice.
  static Linear in_float32(const Weights& weights, int inputs, int outputs);
  // A layer of this scope that shares another layer's weight.
  Linear(const Weights& scope, kernels::PackedWeight shared);

  // x [N, inputs] -> [N, outputs]
  mx::array operator()(const mx::array& x, const RowContext& adapters) const;
  // As above, added to the target.
  kernels::ResidualNorm add_to(
      const ResidualTarget& target, const mx::array& x, const RowContext& adapters
  ) const;

  // The operands for a block of kernels; nullopt if adapters change this layer, or its input is
  // observed.
  std::optional<kernels::Projection> projection(const RowContext& adapters) const;

  std::size_t nbytes() const { return weight_.nbytes(); }

  const kernels::PackedWeight& packed() const { return weight_; }

 private:
  kernels::PackedWeight weight_;
  std::optional<mx::array> bias_;
  ModuleColumns module_;
};

// Linear layers of one input (q, k and v; gate and up). They run as one task, and share a packed
// weight if their formats agree.
class MergedLinear {
 public:
  struct Part {
    Weights weights;
    int outputs = 0;
  };

  MergedLinear(const std::vector<Part>& parts, int inputs);

  // x [N, inputs] -> [N, sum of outputs], the parts side by side.
  mx::array operator()(const mx::array& x, const RowContext& adapters) const;
  // The operands for a block of kernels; nullopt if adapters change a part, or the input is
  // observed.
  std::optional<kernels::Projection> projection(const RowContext& adapters) const;
  // As operator(), as one [N, outputs] per part.
  std::vector<mx::array> split(const mx::array& x, const RowContext& adapters) const;

  std::size_t nbytes() const;

 private:
  // Packs the weights of parts in one format and makes their modules known.
  void add_weight(
      std::span<const Part> parts, const kernels::WeightFormat& format, int first_column
  );

  std::vector<kernels::PackedWeight> weights_;  // One, or one per part.
  std::optional<mx::array> bias_;               // Of all parts.
  std::vector<ModuleColumns> modules_;
  std::vector<int> outputs_;
};

}  // namespace saker::nn
