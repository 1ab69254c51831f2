// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/rms_norm.h"

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

RmsNorm::RmsNorm(const Weights& weights, int size, const NormOptions& options, int groups)
    : weight_(weights.vector("weight", size)), eps_(options.eps), module_{weights.path("")} {
  if (options.weight_offset != 0.0F) {
    weight_ = mx::add(weight_, mx::array(options.weight_offset));
    mx::eval(weight_);
  }
  if (!kernels::on_cpu()) {
    half_weight_ = mx::astype(weight_, mx::bfloat16);
    mx::eval(*half_weight_);
  }
  weights.add_module({
      .path = module_.path,
      .inputs = size,
      .outputs = size * groups,
      .weight = {},
      .bias = {},
      .norm = NormWeight{weight_, options.weight_offset},
  });
}

mx::array RmsNorm::operator()(const mx::array& x, const RowContext& adapters) const {
  const bool half = half_weight_ && x.dtype() == mx::bfloat16;
  return change_norm(kernels::rms_norm(x, half ? *half_weight_ : weight_, eps_), adapters, module_);
}

kernels::ResidualNorm RmsNorm::add(
    const mx::array& x, const mx::array& residual, const RowContext& adapters, float scale
) const {
  return changed(kernels::add_and_norm(residual, after(x, scale)), adapters);
}

kernels::NextNorm RmsNorm::after(const mx::array& stream, float scale) const {
  return {
      .stream = stream, .weight = weight_, .half_weight = half_weight_, .eps = eps_, .scale = scale
  };
}

kernels::ResidualNorm RmsNorm::changed(kernels::ResidualNorm result, const RowContext& adapters)
    const {
  result.normed = change_norm(result.normed, adapters, module_);
  return result;
}

}  // namespace saker::nn
