// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rotary position embedding (https://arxiv.org/abs/2104.09864), half-split pairing as Hugging Face
// stores weights: element i of the first R/2 rotates with element i + R/2; elements from R on pass
// unchanged.

#include "saker/kernels/mx.h"

namespace saker::kernels {

// x [N, H, D]; cos and sin [N, R / 2] float32, R <= D even, one row per position -> x's shape and
// dtype.
mx::array rope(const mx::array& x, const mx::array& cos, const mx::array& sin);

mx::array rope_reference(const mx::array& x, const mx::array& cos, const mx::array& sin);

}  // namespace saker::kernels
