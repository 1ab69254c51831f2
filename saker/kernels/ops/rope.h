// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rotary position embedding (https://arxiv.org/abs/2104.09864). Elements from R on pass unchanged.

#include "saker/kernels/mx.h"

#include <cstdint>
#include <optional>

namespace saker::kernels {

// Which elements of a head rotate together.
enum class RopePairs : std::uint8_t {
  kHalves,      // i and i + R / 2, as most models store their weights.
  kNeighbours,  // 2 i and 2 i + 1.
};

// x [N, H, D] -> x's shape and dtype. cos and sin are [N, R / 2] float32, one row per position; R
// is even, R <= D.
mx::array rope(
    const mx::array& x,
    const mx::array& cos,
    const mx::array& sin,
    RopePairs pairs = RopePairs::kHalves
);

// Norm weights by head: [heads, 2, D / 2] float32. `swapped` has each head's halves in the other
// order.
struct HeadWeights {
  mx::array straight;
  mx::array swapped;
};

// From the queries' weight [D] for H heads, then the keys' for H_kv. REQUIRES: D is even.
HeadWeights weights_of_heads(
    const mx::array& q_weight, int query_heads, const mx::array& k_weight, int kv_heads
);

// As `rope`, built from a few MLX operations, for devices without our bodies. x is [N, H, D], or
// has axes of 1 beside N. Multiplies by head weights if given. REQUIRES: shapes that `rope` takes.
mx::array rope_plain(
    const mx::array& x,
    const std::optional<HeadWeights>& weights,
    const mx::array& cos,
    const mx::array& sin,
    RopePairs pairs = RopePairs::kHalves
);

mx::array rope_reference(
    const mx::array& x,
    const mx::array& cos,
    const mx::array& sin,
    RopePairs pairs = RopePairs::kHalves
);

}  // namespace saker::kernels
