// SPDX-License-Identifier: Apache-2.0
#pragma once

// RMS norm over the last axis (https://arxiv.org/abs/1910.07467): y = x / sqrt(mean(x^2) + eps) *
// weight, in float32. A row's bits do not depend on the rows beside it.

#include "saker/kernels/mx.h"

namespace saker::kernels {

// x [..., D], weight [D] float32 -> x's shape and dtype.
mx::array rms_norm(const mx::array& x, const mx::array& weight, float eps);

struct ResidualNorm {
  mx::array sum;     // (x + residual) * scale: the new residual stream.
  mx::array normed;  // rms_norm(sum); if the residual is bf16, of sum rounded to bf16.
};

// Adds and normalises in one pass over memory. x [N, D] float32, residual [N, D]. Blocks do this in
// the operation that computes the residual (ops/blocks.h).
ResidualNorm rms_norm_residual(
    const mx::array& x,
    const mx::array& residual,
    const mx::array& weight,
    float eps,
    float scale = 1.0F
);

mx::array rms_norm_reference(const mx::array& x, const mx::array& weight, float eps);

}  // namespace saker::kernels
