// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layer norm over the last axis (https://arxiv.org/abs/1607.06450): y = (x - mean(x)) / sqrt(var(x)
// + eps) * weight + bias, in float32. A row's bits do not depend on the rows beside it.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/norm.h"

namespace saker::kernels {

// x [N, D], weight and bias [D] float32 -> x's shape and dtype.
mx::array layer_norm(const mx::array& x, const mx::array& weight, const mx::array& bias, float eps);

// The sum x + residual and its norm, in one pass over memory. Both are [N, D].
ResidualNorm layer_norm_residual(
    const mx::array& x,
    const mx::array& residual,
    const mx::array& weight,
    const mx::array& bias,
    float eps
);

mx::array layer_norm_reference(
    const mx::array& x, const mx::array& weight, const mx::array& bias, float eps
);

}  // namespace saker::kernels
