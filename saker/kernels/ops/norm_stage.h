// SPDX-License-Identifier: Apache-2.0
#pragma once

// A block that is one operation, and its end: the addition to the residual stream, and the norm.

#include "saker/kernels/cpu/dispatch/row_bodies.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/ops/blocks.h"
#include "saker/kernels/ops/strided_rows.h"

#include <vector>

namespace saker::kernels {

struct NormStage {
  void (*body)(const NormRow& row, int width, float eps);
  float eps;
  ResidualScales scales;

  // False where the addition and the norm are operations of their own.
  static bool runs(const NextNorm& next) {
    return next.stream.dtype() == mx::float32 && !next.norm.bias;
  }

  // On the bodies in use. REQUIRES: runs(next).
  explicit NormStage(const NextNorm& next);

  // `normed` [N, width] holds what is added, and then the norm.
  void operator()(StridedRows& stream, StridedRows& weight, float* sum, float* normed) const;
};

// The operation's inputs that the stage reads: the stream, and the norm's weight in float32. Throws
// kInvalidArgument naming the block unless they fit its result.
std::vector<mx::array> norm_inputs(
    const char* block, const NextNorm& next, const mx::Shape& result
);

// A block's body. `product(inputs, out)` writes the block's result [N, outputs].
template <typename Product>
struct BlockBody {
  Product product;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [product = product, inputs = inputs, out = outputs[0].data<float>()] {
      product(inputs, out);
    };
  }
};

// As above, with the stage behind it. Inputs: those of `norm_inputs`, then the product's. Outputs:
// sum, normed.
template <typename Product>
struct NormedBlockBody {
  Product product;
  NormStage norm;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [product = product,
            norm = norm,
            inputs = std::vector<mx::array>(inputs.begin() + 2, inputs.end()),
            stream = StridedRows(inputs[0]),
            weight = StridedRows(inputs[1]),
            sum = outputs[0].data<float>(),
            normed = outputs[1].data<float>()]() mutable {
      product(inputs, normed);
      norm(stream, weight, sum, normed);
    };
  }
};

}  // namespace saker::kernels
