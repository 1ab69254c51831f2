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
      "norm: a weight of {} elements does not fit rows of {}",
      weight.size(),
      x.ndim() >= 1 ? x.shape(-1) : 0
  );
}

void check(const mx::array& x, const NormParts& parts) {
  check(x, parts.weight);
  require(
      !parts.bias ||
          (parts.kind == NormKind::kLayer && parts.bias->shape() == parts.weight.shape()),
      ErrorCode::kInvalidArgument,
      "norm: a bias of {} elements, expected {} of a LayerNorm",
      parts.bias ? parts.bias->size() : 0,
      parts.weight.size()
  );
}

// MLX's own, in x's dtype.
mx::array plain_norm(const mx::array& x, const NormParts& parts) {
  const auto weight = mx::astype(parts.weight, x.dtype());
  if (parts.kind == NormKind::kRms) {
    return mx::fast::rms_norm(x, weight, parts.eps);
  }
  std::optional<mx::array> bias;
  if (parts.bias) {
    bias = mx::astype(*parts.bias, x.dtype());
  }
  return mx::fast::layer_norm(x, weight, bias, parts.eps);
}

// The arrays of a norm that its operation reads.
void add_parts(std::vector<mx::array>& inputs, const NormParts& parts) {
  inputs.push_back(mx::astype(parts.weight, mx::float32));
  if (parts.bias) {
    inputs.push_back(mx::astype(*parts.bias, mx::float32));
  }
}

bool has_body(const mx::array& x) {
  return on_cpu() && x.dtype() == mx::float32;
}

// Inputs x, [residual,] weight, [bias]; outputs [sum,] normed. Rows of [N, D] or [N, H, D].
struct NormBody {
  void (*body)(const NormRow& row, int width, float eps);
  float eps;
  bool adds = false;
  ResidualScales scales = {};

  NormBody(const NormParts& parts, bool is_sum, const ResidualScales& of = {})
      : body(
            parts.kind == NormKind::kRms ? kernel_table().rows->rms_norm
                                         : kernel_table().rows->layer_norm
        ),
        eps(parts.eps),
        adds(is_sum),
        scales(of) {}

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    const std::size_t first = adds ? 2 : 1;
    return [body = body,
            eps = eps,
            scales = scales,
            x = StridedRows(inputs[0]),
            residual = adds ? std::optional(StridedRows(inputs[1])) : std::nullopt,
            weight = StridedRows(inputs[first]),
            bias = inputs.size() > first + 1 ? std::optional(StridedRows(inputs[first + 1]))
                                             : std::nullopt,
            sum = adds ? outputs[0].data<float>() : nullptr,
            normed = outputs.back().data<float>()]() mutable {
      const HeadRows from = x.resolve();
      const HeadRows added = residual.has_value() ? residual->resolve() : HeadRows{};
      const float* weights = weight.resolve().data;
      const float* biases = bias.has_value() ? bias->resolve().data : nullptr;
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
            scales.sum,
            scales.residual,
            biases,
        };
        body(task, width, eps);
      });
    };
  }
};

// Inputs: x, residual and optional factors of the sum and of the residual. Outputs: their scaled sum
// and, if the residual is bf16, that sum as bf16.
std::vector<mx::array> sums(const std::vector<mx::array>& inputs) {
  constexpr std::size_t kSumScale = 2;
  constexpr std::size_t kResidualScale = 3;
  auto sum = mx::add(
      inputs[0],
      inputs.size() > kResidualScale ? mx::multiply(inputs[1], inputs[kResidualScale]) : inputs[1]
  );
  if (inputs.size() > kSumScale) {
    sum = mx::multiply(sum, inputs[kSumScale]);
  }
  std::vector<mx::array> outputs = {sum};
  if (inputs[1].dtype() == mx::bfloat16 && sum.dtype() != mx::bfloat16) {
    outputs.push_back(mx::astype(sum, mx::bfloat16));
  }
  return outputs;
}

// The sum of a stream and a residual by a few MLX operations, and as rows for the next product: as
// bf16 if the residual is bf16.
ResidualNorm plain_sum(
    const mx::array& x, const mx::array& residual, const ResidualScales& scales
) {
  std::vector<mx::array> inputs = {x, residual};
  if (scales.sum != 1.0F || scales.residual != 1.0F) {
    inputs.emplace_back(scales.sum, x.dtype());
  }
  if (scales.residual != 1.0F) {
    inputs.emplace_back(scales.residual, x.dtype());
  }
  auto made = compile_on_gpu(sums, inputs);
  return {made.front(), made.back()};
}

void check_residual(const mx::array& x, const mx::array& residual) {
  require(
      x.shape() == residual.shape() && x.ndim() <= 3,
      ErrorCode::kInvalidArgument,
      "norm: a residual of {} elements does not fit {}",
      residual.size(),
      x.size()
  );
}

}  // namespace

mx::array rms_norm(const mx::array& x, const mx::array& weight, float eps) {
  return norm(x, {.weight = weight, .eps = eps});
}

mx::array norm(const mx::array& x, const NormParts& parts) {
  check(x, parts);
  if (!has_body(x)) {
    return plain_norm(x, parts);
  }
  const bool direct = x.ndim() <= 3;
  const auto rows = direct ? x : mx::reshape(x, {-1, x.shape(-1)});
  std::vector<mx::array> inputs = {rows};
  add_parts(inputs, parts);
  auto out = cpu_operation("SakerNorm", rows.shape(), inputs, NormBody(parts, false));
  return direct ? out : mx::reshape(out, x.shape());
}

ResidualNorm rms_norm_residual(
    const mx::array& x, const mx::array& residual, const mx::array& weight, float eps, float scale
) {
  return norm_residual(x, residual, {.weight = weight, .eps = eps}, {.sum = scale});
}

ResidualNorm norm_residual(
    const mx::array& x,
    const mx::array& residual,
    const NormParts& parts,
    const ResidualScales& scales
) {
  check(x, parts);
  check_residual(x, residual);
  if (!has_body(x) || residual.dtype() != mx::float32) {
    auto result = plain_sum(x, residual, scales);
    result.normed = plain_norm(result.normed, parts);
    return result;
  }
  std::vector<mx::array> inputs = {x, residual};
  add_parts(inputs, parts);
  auto outputs = cpu_operation(
      "SakerNormResidual", {x.shape(), x.shape()}, inputs, NormBody(parts, true, scales)
  );
  return {std::move(outputs[0]), std::move(outputs[1])};
}

ResidualNorm add_residual(
    const mx::array& x, const mx::array& residual, const ResidualScales& scales
) {
  check_residual(x, residual);
  return plain_sum(x, residual, scales);
}

mx::array norm_reference(const mx::array& x, const NormParts& parts) {
  auto wide = mx::astype(x, mx::float32);
  if (parts.kind == NormKind::kLayer) {
    wide = wide - mx::mean(wide, -1, true);
  }
  const auto mean = mx::mean(mx::square(wide), -1, true);
  auto scaled =
      wide * mx::rsqrt(mean + mx::array(parts.eps)) * mx::astype(parts.weight, mx::float32);
  if (parts.bias) {
    scaled = scaled + mx::astype(*parts.bias, mx::float32);
  }
  return mx::astype(scaled, x.dtype());
}

mx::array rms_norm_reference(const mx::array& x, const mx::array& weight, float eps) {
  return norm_reference(x, {.weight = weight, .eps = eps});
}

}  // namespace saker::kernels
