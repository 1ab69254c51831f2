// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/norm.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/row_bodies.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/gpu/compile_on_gpu.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/strided_rows.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

void check(const mx::array& x, const mx::array& weight) {
  require(
      x.ndim() >= 1 && x.size() > 0 && weight.ndim() == 1 && weight.shape(0) == x.shape(-1),
      ErrorCode::kInvalidArgument,
      "rms_norm: a weight of {} elements does not fit rows of {}",
      weight.size(),
      x.ndim() >= 1 ? x.shape(-1) : 0
  );
}

bool has_body(const mx::array& x) {
  return on_cpu() && x.dtype() == mx::float32;
}

// Inputs x, [residual,] weight; outputs [sum,] normed. Rows of [N, D] or [N, H, D].
struct NormBody {
  const RowBodies* bodies;
  float eps;
  float scale = 1.0F;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    const bool adds = inputs.size() == 3;
    return [bodies = bodies,
            eps = eps,
            scale = scale,
            x = StridedRows(inputs[0]),
            residual = adds ? std::optional(StridedRows(inputs[1])) : std::nullopt,
            weight = StridedRows(inputs.back()),
            sum = adds ? outputs[0].data<float>() : nullptr,
            normed = outputs.back().data<float>()]() mutable {
      const HeadRows from = x.resolve();
      const HeadRows added = residual.has_value() ? residual->resolve() : HeadRows{};
      const float* weights = weight.resolve().data;
      const int heads = x.heads();
      const int width = x.width();
      each_row(x.rows() * heads, 3L * width, [&](int row) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * width;
        const NormRow task{
            StridedRows::at(from, row / heads, row % heads),
            added.data != nullptr ? StridedRows::at(added, row / heads, row % heads) : nullptr,
            weights,
            sum != nullptr ? sum + at : nullptr,
            normed + at,
            scale,
        };
        bodies->rms_norm(task, width, eps);
      });
    };
  }
};

// Inputs: x, residual and an optional factor. Outputs: their scaled sum and, if the residual is
// bf16, that sum as bf16.
std::vector<mx::array> sums(const std::vector<mx::array>& inputs) {
  auto sum = mx::add(inputs[0], inputs[1]);
  if (inputs.size() > 2) {
    sum = mx::multiply(sum, inputs[2]);
  }
  std::vector<mx::array> outputs = {sum};
  if (inputs[1].dtype() == mx::bfloat16 && sum.dtype() != mx::bfloat16) {
    outputs.push_back(mx::astype(sum, mx::bfloat16));
  }
  return outputs;
}

// A few MLX operations. If the residual is bf16, the sum is normed as bf16, which is what the next
// product takes.
ResidualNorm rms_norm_residual_plain(
    const mx::array& x, const mx::array& residual, const mx::array& weight, float eps, float scale
) {
  std::vector<mx::array> inputs = {x, residual};
  if (scale != 1.0F) {
    inputs.emplace_back(scale, x.dtype());
  }
  auto made = compile_on_gpu(sums, inputs);
  const mx::array& rows = made.back();
  auto normed = mx::fast::rms_norm(rows, mx::astype(weight, rows.dtype()), eps);
  return {std::move(made.front()), std::move(normed)};
}

}  // namespace

mx::array rms_norm(const mx::array& x, const mx::array& weight, float eps) {
  check(x, weight);
  if (!has_body(x)) {
    return mx::fast::rms_norm(x, mx::astype(weight, x.dtype()), eps);
  }
  const bool direct = x.ndim() <= 3;
  const auto rows = direct ? x : mx::reshape(x, {-1, x.shape(-1)});
  const auto weights = mx::astype(weight, mx::float32);
  const NormBody body{kernel_table().rows, eps};
  auto out = cpu_operation("SakerRmsNorm", rows.shape(), {rows, weights}, body);
  return direct ? out : mx::reshape(out, x.shape());
}

ResidualNorm rms_norm_residual(
    const mx::array& x, const mx::array& residual, const mx::array& weight, float eps, float scale
) {
  check(x, weight);
  require(
      x.shape() == residual.shape() && x.ndim() <= 3,
      ErrorCode::kInvalidArgument,
      "rms_norm: a residual of {} elements does not fit {}",
      residual.size(),
      x.size()
  );
  if (!has_body(x) || residual.dtype() != mx::float32) {
    return rms_norm_residual_plain(x, residual, weight, eps, scale);
  }
  const NormBody body{kernel_table().rows, eps, scale};
  const auto weights = mx::astype(weight, mx::float32);
  auto outputs =
      cpu_operation("SakerRmsNormResidual", {x.shape(), x.shape()}, {x, residual, weights}, body);
  return {std::move(outputs[0]), std::move(outputs[1])};
}

mx::array rms_norm_reference(const mx::array& x, const mx::array& weight, float eps) {
  const auto wide = mx::astype(x, mx::float32);
  const auto mean = mx::mean(mx::square(wide), -1, true);
  const auto scaled = wide * mx::rsqrt(mean + mx::array(eps)) * mx::astype(weight, mx::float32);
  return mx::astype(scaled, x.dtype());
}

}  // namespace saker::kernels
