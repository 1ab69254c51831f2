// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/rms_norm.h"

namespace saker::nn {

RmsNorm::RmsNorm(const Weights& weights, int size, const NormOptions& options)
    : weight_(weights.vector("weight", size)), eps_(options.eps) {
  if (options.weight_offset != 0.0F) {
    weight_ = mx::add(weight_, mx::array(options.weight_offset));
    mx::eval(weight_);
  }
}

mx::array RmsNorm::operator()(const mx::array& x) const {
  return kernels::rms_norm(x, weight_, eps_);
}

kernels::ResidualNorm RmsNorm::add(const mx::array& x, const mx::array& residual) const {
  return kernels::rms_norm_residual(x, residual, weight_, eps_);
}

}  // namespace saker::nn
