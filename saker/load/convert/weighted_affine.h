// SPDX-License-Identifier: Apache-2.0
#pragma once

// MLX's affine codes by importance: a search for the scale and bias of each group that lose the least
//
//   sum over columns of importance * (scale * code + bias - w)^2
//
// after both are rounded to their dtype. The search tries ranges around the group's own, and fits a
// line to the codes of each by weighted least squares. ggml does so for its types
// (https://github.com/ggml-org/ggml, ggml-quants.c). No group loses more than by mlx-lm's line,
// which is tried, too. Bits depend on the group alone. No allocations. Any thread.

#include "saker/base/tensor.h"
#include "saker/kernels/layout/weight_format.h"
#include "saker/kernels/quantize/quantize_loops.h"

#include <cstdint>
#include <span>

namespace saker::load {

inline constexpr std::size_t kMostAffineGroup = 128;

// Writes a code per value, and returns the line in numbers of `dtype`. Columns of importance 0 count
// a little; if all are 0, they count alike. NaN and infinity have no code: the result is undefined
// then. REQUIRES: `values` are numbers of `dtype`, 32, 64 or 128 of them; an importance per value,
// finite and at least 0; bits 2, 3, 4, 5, 6 or 8.
kernels::AffineLine weighted_line(
    DType dtype,
    int bits,
    std::span<const float> values,
    std::span<const float> importance,
    std::uint8_t* codes
);

// Encodes one group: its codes as a stream of bits, its scale and its bias. REQUIRES: an affine
// format, and as weighted_line().
void encode_weighted(
    const kernels::WeightFormat& format,
    DType dtype,
    std::span<const float> values,
    std::span<const float> importance,
    const kernels::QuantizedBytes& to
);

}  // namespace saker::load
