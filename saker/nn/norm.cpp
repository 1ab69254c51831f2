// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/norm.h"

#include "saker/kernels/gpu/backend.h"

namespace saker::nn {
namespace {

// Adapters change a norm by one factor per output.
mx::array change_norm(const mx::array& y, const RowContext& adapters, const ModuleColumns& module) {
  if (adapters.base_only()) {
    return y;
  }
  const auto rows = y.ndim() == 2 ? y : mx::reshape(y, {y.shape(0), -1});
  const auto result = adapters.change(rows, rows, {&module, 1});
  return y.ndim() == 2 ? result : mx::reshape(result, y.shape());
}

}  // namespace

Norm::Norm(const Weights& weights, int size, const NormOptions& options, int groups)
    : parts_{.kind = options.kind, .weight = weights.vector("weight", size), .eps = options.eps},
      module_{weights.path("")} {
  if (options.weight_offset != 0.0F) {
    parts_.weight = mx::add(parts_.weight, mx::array(options.weight_offset));
    mx::eval(parts_.weight);
  }
  if (!kernels::on_cpu()) {
    half_weight_ = mx::astype(parts_.weight, mx::bfloat16);
    mx::eval(*half_weight_);
  }
  if (options.kind == kernels::NormKind::kLayer && weights.has("bias")) {
    parts_.bias = weights.vector("bias", size);
    return;
  }
  weights.add_module({
      .path = module_.path,
      .inputs = size,
      .outputs = size * groups,
      .weight = {},
      .bias = {},
      .norm = NormWeight{parts_.weight, options.weight_offset},
  });
}

mx::array Norm::operator()(const mx::array& x, const RowContext& adapters) const {
  auto parts = parts_;
  if (half_weight_ && x.dtype() == mx::bfloat16) {
    parts.weight = *half_weight_;
  }
  return change_norm(kernels::norm(x, parts), adapters, module_);
}

kernels::ResidualNorm Norm::add(
    const mx::array& x,
    const mx::array& residual,
    const RowContext& adapters,
    const kernels::ResidualScales& scales
) const {
  return changed(kernels::add_and_norm(residual, after(x, scales)), adapters);
}

kernels::NextNorm Norm::after(const mx::array& stream, const kernels::ResidualScales& scales)
    const {
  return {.stream = stream, .norm = parts_, .half_weight = half_weight_, .scales = scales};
}

kernels::ResidualNorm Norm::changed(kernels::ResidualNorm result, const RowContext& adapters)
    const {
  result.normed = change_norm(result.normed, adapters, module_);
  return result;
}

}  // namespace saker::nn
