// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rotary position embedding (https://arxiv.org/abs/2104.09864), half-split pairing as Hugging Face
// stores weights: element i of the first R/2 rotates with element i + R/2; elements from R on pass
// unchanged.

#include "saker/kernels/mx.h"

#include <optional>

namespace saker::kernels {

// x [N, H, D]; cos and sin [N, R / 2] float32, R <= D even, one row per position -> x's shape and
// dtype.
mx::array rope(const mx::array& x, const mx::array& cos, const mx::array& sin);

// Weights of norms over heads, by head: [heads, 2, D / 2] float32, and the same with each head's
// halves in the other order.
struct HeadWeights {
  mx::array straight;
  mx::array swapped;
};

// Of queries' weight [D] for H heads and then keys' for H_kv. REQUIRES: D is even.
HeadWeights weights_of_heads(
    const mx::array& q_weight, int query_heads, const mx::array& k_weight, int kv_heads
);

// What `rope` gives for x [N, H, D], or with axes of 1 beside N, times the weights of its heads if
// any: by few operations of MLX, for devices without bodies of ours. REQUIRES: shapes that `rope`
// takes.
mx::array rope_plain(
    const mx::array& x,
    const std::optional<HeadWeights>& weights,
    const mx::array& cos,
    const mx::array& sin
);

mx::array rope_reference(const mx::array& x, const mx::array& cos, const mx::array& sin);

}  // namespace saker::kernels
