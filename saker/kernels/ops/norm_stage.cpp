// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/norm_stage.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/layout/row_tiles.h"

#include <cstddef>

namespace saker::kernels {

NormStage::NormStage(const NextNorm& next)
    : body(
          next.norm.kind == NormKind::kRms ? kernel_table().rows->rms_norm
                                           : kernel_table().rows->layer_norm
      ),
      eps(next.norm.eps),
      scales(next.scales) {}

void NormStage::operator()(StridedRows& stream, StridedRows& weight, float* sum, float* normed)
    const {
  const HeadRows before = stream.resolve();
  const float* weights = weight.resolve().data;
  const int width = stream.width();
  each_row(stream.rows(), 3L * width, [&](int row) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * width;
    float* to = normed + at;
    const NormRow task{
        StridedRows::at(before, row, 0), to, weights, sum + at, to, scales.sum, scales.residual
    };
    body(task, width, eps);
  });
}

std::vector<mx::array> norm_inputs(
    const char* block, const NextNorm& next, const mx::Shape& result
) {
  require(
      next.stream.shape() == result && next.norm.weight.shape() == mx::Shape{result[1]},
      ErrorCode::kInvalidArgument,
      "{}: a residual stream of {} elements and a norm of {} do not fit [{}, {}]",
      block,
      next.stream.size(),
      next.norm.weight.size(),
      result[0],
      result[1]
  );
  return {next.stream, mx::astype(next.norm.weight, mx::float32)};
}

}  // namespace saker::kernels
