// SPDX-License-Identifier: Apache-2.0
#pragma once

// The end of a block that is one operation: the addition to the residual stream, and the norm.

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

}  // namespace saker::kernels
