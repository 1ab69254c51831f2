// SPDX-License-Identifier: Apache-2.0
#pragma once

// Norms over the last axis, in float32. A row's bits do not depend on the rows beside it.
// RMS norm (https://arxiv.org/abs/1910.07467): y = x / sqrt(mean(x^2) + eps) * weight.
// LayerNorm (https://arxiv.org/abs/1607.06450): the same of x - mean(x), plus a bias if there is one.

#include "saker/kernels/mx.h"

#include <cstdint>
#include <optional>

namespace saker::kernels {

// x [..., D], weight [D] float32 -> x's shape and dtype.
mx::array rms_norm(const mx::array& x, const mx::array& weight, float eps);

enum class NormKind : std::uint8_t { kRms, kLayer };

// A norm's kind and numbers. REQUIRES: only LayerNorm has a bias.
struct NormParts {
  NormKind kind = NormKind::kRms;
  mx::array weight;                              // [D] float32
  std::optional<mx::array> bias = std::nullopt;  // [D] float32
  float eps = 1e-6F;
};

// As rms_norm, for any kind.
mx::array norm(const mx::array& x, const NormParts& parts);

struct ResidualNorm {
  mx::array sum;     // (x + residual * residual_scale) * scale: the new residual stream.
  mx::array normed;  // norm(sum); if the residual is bf16, of sum rounded to bf16.
};

struct ResidualScales {
  float sum = 1.0F;
  float residual = 1.0F;
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

// As above, for any kind of norm.
ResidualNorm norm_residual(
    const mx::array& x,
    const mx::array& residual,
    const NormParts& parts,
    const ResidualScales& scales = {}
);

// The sum alone, as the stream and as rows for the next product.
ResidualNorm add_residual(
    const mx::array& x, const mx::array& residual, const ResidualScales& scales = {}
);

mx::array norm_reference(const mx::array& x, const NormParts& parts);
mx::array rms_norm_reference(const mx::array& x, const mx::array& weight, float eps);

}  // namespace saker::kernels
