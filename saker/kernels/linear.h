// SPDX-License-Identifier: Apache-2.0
#pragma once

// Matrix products with packed weights, and embedding look-up.
//
// x is [M, K]; results are [M, N], in x's dtype (float32 on CPU). Sums are float32. On CPU the
// operands are bf16 where the machine multiplies bf16 (weights bf16 or quantized), else float32;
// weights are never rounded. The bits of a row do not depend on M, on the rows beside it or on the
// number of threads.

#include "saker/kernels/mx.h"
#include "saker/kernels/packed_weight.h"

#include <optional>

namespace saker::kernels {

// x [M, K] times weight^T, plus `bias` [N] if given -> [M, N].
mx::array linear(
    const mx::array& x,
    const PackedWeight& weight,
    const std::optional<mx::array>& bias = std::nullopt
);

// The same from plain MLX operations on the dequantized float32 weight: the truth in tests, the
// path without own bodies.
mx::array linear_reference(
    const mx::array& x,
    const PackedWeight& weight,
    const std::optional<mx::array>& bias = std::nullopt
);

// Rows `ids` (int32, [M], each in [0, N)) of the weight -> [M, K], dequantized to float32 on CPU.
mx::array embed(const mx::array& ids, const PackedWeight& weight);

}  // namespace saker::kernels
