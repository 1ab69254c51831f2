// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/layer_norm.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/row_bodies.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/strided_rows.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

void check(const mx::array& x, const mx::array& weight, const mx::array& bias) {
  require(
      x.ndim() == 2 && x.size() > 0 && weight.shape() == mx::Shape{x.shape(1)} &&
          bias.shape() == weight.shape(),
      ErrorCode::kInvalidArgument,
      "layer_norm: a weight of {} elements and a bias of {} do not fit rows of {}",
      weight.size(),
      bias.size(),
      x.ndim() == 2 ? x.shape(1) : 0
  );
}

bool has_body(const mx::array& x) {
  return on_cpu() && x.dtype() == mx::float32;
}

// Inputs x, [residual,] weight, bias; outputs [sum,] normed.
struct LayerNormBody {
  const RowBodies* bodies;
  float eps;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    const bool adds = inputs.size() == 4;
    const std::size_t first_factor = inputs.size() - 2;
    return [bodies = bodies,
            eps = eps,
            x = StridedRows(inputs[0]),
            residual = adds ? std::optional(StridedRows(inputs[1])) : std::nullopt,
            weight = StridedRows(inputs[first_factor]),
            bias = StridedRows(inputs[first_factor + 1]),
            sum = adds ? outputs[0].data<float>() : nullptr,
            normed = outputs.back().data<float>()]() mutable {
      const HeadRows from = x.resolve();
      const HeadRows added = residual.has_value() ? residual->resolve() : HeadRows{};
      const float* weights = weight.resolve().data;
      const float* biases = bias.resolve().data;
      const int width = x.width();
      each_row(x.rows(), 4L * width, [&](int row) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * width;
        const LayerNormRow task{
            StridedRows::at(from, row, 0),
            added.data != nullptr ? StridedRows::at(added, row, 0) : nullptr,
            weights,
            biases,
            sum != nullptr ? sum + at : nullptr,
            normed + at,
        };
        bodies->layer_norm(task, width, eps);
      });
    };
  }
};

}  // namespace

mx::array layer_norm(
    const mx::array& x, const mx::array& weight, const mx::array& bias, float eps
) {
  check(x, weight, bias);
  if (!has_body(x)) {
    return mx::fast::layer_norm(x, mx::astype(weight, x.dtype()), mx::astype(bias, x.dtype()), eps);
  }
  const LayerNormBody body{kernel_table().rows, eps};
  return cpu_operation("SakerLayerNorm", x.shape(), {x, weight, bias}, body);
}

ResidualNorm layer_norm_residual(
    const mx::array& x,
    const mx::array& residual,
    const mx::array& weight,
    const mx::array& bias,
    float eps
) {
  check(x, weight, bias);
  require(
      x.shape() == residual.shape(),
      ErrorCode::kInvalidArgument,
      "layer_norm: a residual of {} elements does not fit {}",
      residual.size(),
      x.size()
  );
  if (!has_body(x) || residual.dtype() != mx::float32) {
    auto sum = mx::add(x, residual);
    auto normed = layer_norm(sum, weight, bias, eps);
    return {std::move(sum), std::move(normed)};
  }
  const LayerNormBody body{kernel_table().rows, eps};
  auto outputs = cpu_operation(
      "SakerLayerNormResidual", {x.shape(), x.shape()}, {x, residual, weight, bias}, body
  );
  return {std::move(outputs[0]), std::move(outputs[1])};
}

mx::array layer_norm_reference(
    const mx::array& x, const mx::array& weight, const mx::array& bias, float eps
) {
  const auto wide = mx::astype(x, mx::float32);
  const auto centred = wide - mx::mean(wide, -1, true);
  const auto variance = mx::mean(mx::square(centred), -1, true);
  const auto scaled = centred * mx::rsqrt(variance + mx::array(eps));
  return mx::astype(scaled * weight + bias, x.dtype());
}

}  // namespace saker::kernels
