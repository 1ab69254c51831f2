// SPDX-License-Identifier: Apache-2.0
#pragma once

// One matrix product on all threads: prepares the rows of x and cuts the result into tiles.

#include "saker/kernels/cpu/linear_bodies.h"

namespace saker::kernels {

// out [x.count, weight.rows] = x times weight^T, plus `bias` [weight.rows] unless null. Keeps
// working memory for the calling thread's next product. Throws kCapacity without memory.
void multiply_rows(
    const LinearBodies& bodies,
    const PackedMatrix& weight,
    const InputRows& x,
    const float* bias,
    float* out
);

}  // namespace saker::kernels
