// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layer norm with a learned weight and, if its tensor exists, a bias. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/layer_norm.h"
#include "saker/nn/weights/weights.h"

namespace saker::nn {

class LayerNorm {
 public:
  // Throws kCorruptData for a missing weight, or for tensors of another size.
  LayerNorm(const Weights& weights, int size, float eps)
      : weight_(weights.vector("weight", size)),
        bias_(weights.has("bias") ? weights.vector("bias", size) : mx::zeros({size}, mx::float32)),
        eps_(eps) {
    mx::eval(bias_);
  }

  // x [N, size] -> the same shape and dtype.
  mx::array operator()(const mx::array& x) const {
    return kernels::layer_norm(x, weight_, bias_, eps_);
  }

  // The sum x + residual and its norm.
  kernels::ResidualNorm add(const mx::array& x, const mx::array& residual) const {
    return kernels::layer_norm_residual(x, residual, weight_, bias_, eps_);
  }

 private:
  mx::array weight_;
  mx::array bias_;
  float eps_;
};

}  // namespace saker::nn
