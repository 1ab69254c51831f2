// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear layers over named weights. A bias is added exactly when its tensor exists. Rows that use
// an adapter get its change after the product that all rows share. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/packed_weight.h"
#include "saker/nn/adapter.h"
#include "saker/nn/weights.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace saker::nn {

// Throws kCorruptData naming the tensor unless `tensors` are an [outputs, inputs] layer. A float
// weight says its columns itself; packed words are checked by the packing, which knows the format.
void check_linear_shape(
    const kernels::WeightTensors& tensors,
    const kernels::WeightFormat& format,
    int inputs,
    int outputs
);

// The [outputs, inputs] weight of a scope. Throws kCorruptData naming the tensor unless it has that
// shape.
kernels::PackedWeight pack_linear(const Weights& weights, int inputs, int outputs);

class Linear {
 public:
  // Throws kCorruptData naming the tensor unless the scope holds an [outputs, inputs] weight.
  Linear(const Weights& weights, int inputs, int outputs);
  // The same with weight, input and products in float32, whatever the checkpoint's dtype: for rows
  // that choose, such as routers', where a rounded number can be another choice.
  static Linear in_float32(const Weights& weights, int inputs, int outputs);
  // A layer of this scope whose weight is another's too.
  Linear(const Weights& scope, kernels::PackedWeight shared);

  // x [N, inputs] -> [N, outputs]
  mx::array operator()(const mx::array& x, const RowContext& adapters) const;

  std::size_t nbytes() const { return weight_.nbytes(); }

  const kernels::PackedWeight& packed() const { return weight_; }

 private:
  kernels::PackedWeight weight_;
  std::optional<mx::array> bias_;
  ModuleColumns module_;
};

// Linear layers of one input (q, k and v; gate and up): one product where their formats agree, one
// each otherwise. The results are the same bits.
class MergedLinear {
 public:
  struct Part {
    Weights weights;
    int outputs = 0;
  };

  MergedLinear(const std::vector<Part>& parts, int inputs);

  // x [N, inputs] -> [N, sum of outputs], the parts beside each other.
  mx::array operator()(const mx::array& x, const RowContext& adapters) const;
  // One [N, outputs] per part.
  std::vector<mx::array> split(const mx::array& x, const RowContext& adapters) const;

  std::size_t nbytes() const;

 private:
  struct Product {
    kernels::PackedWeight weight;
    std::optional<mx::array> bias;
    std::vector<ModuleColumns> modules;

    mx::array operator()(const mx::array& x, const RowContext& adapters) const;
  };

  static Product make_product(const std::vector<Part>& parts, const kernels::WeightFormat& format);

  std::vector<Product> products_;  // One, or one per part.
  std::vector<int> outputs_;
};

}  // namespace saker::nn
