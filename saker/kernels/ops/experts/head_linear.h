// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear layers of heads: each head has a weight of its own, which multiplies that head's rows. As
// experts that every row takes, in order. A row's bits are those of kernels::linear with its head's
// weight.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/experts/expert_linear.h"

#include <optional>

namespace saker::kernels {

// x [N, H, K] times weights [H, M, K] -> [N, H, M], in x's dtype. With `tail` [N, H, T] each result
// is followed by its tail: [N, H, M + T].
mx::array head_linear(
    const mx::array& x,
    const ExpertWeights& weights,
    const std::optional<mx::array>& tail = std::nullopt
);

// As above from plain MLX operations.
mx::array head_linear_reference(
    const mx::array& x,
    const ExpertWeights& weights,
    const std::optional<mx::array>& tail = std::nullopt
);

}  // namespace saker::kernels
