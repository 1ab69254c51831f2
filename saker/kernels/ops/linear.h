// SPDX-License-Identifier: Apache-2.0
#pragma once

// Matrix products with packed weights, and embedding look-up.
//
// x is [M, K] and results are [M, N], in x's dtype (float32 on CPU); on a GPU in the operands'
// dtype. Sums are float32.
//
// On CPU the operands are bf16 where the machine multiplies bf16 and weights are bf16 or quantized;
// else float32. Weights are not rounded, except on AMX. The bits of a row do not depend on M, on
// the rows beside it or on the number of threads. On a GPU the operands are bf16 where weights or
// their scales are (docs/adr/0028), else float32.
//
// Callers may name rows that take int8 operands (cpu/int8/panels.h): faster, and less precise. Where
// the device has no int8 product, or the weight is float32 or float16, these rows are computed as
// all others.

#include "saker/kernels/mx.h"
#include "saker/kernels/storage/packed_weight.h"

#include <optional>
#include <span>

namespace saker::kernels {

// Rows [first, first + count) of a pass.
struct RowRange {
  int first = 0;
  int count = 0;

  bool operator==(const RowRange&) const = default;
};

// x [M, K] times weight^T, plus `bias` [N] if given -> [M, N]. `int8_rows` are ascending and do not
// overlap.
mx::array linear(
    const mx::array& x,
    const PackedWeight& weight,
    const std::optional<mx::array>& bias = std::nullopt,
    std::span<const RowRange> int8_rows = {}
);

// Weights of one input: their rows become columns of one result, side by side. Lives as long as the
// call that gets it.
struct Projection {
  std::span<const PackedWeight> weights;  // At least one, in any formats, all with the same K.
  const std::optional<mx::array>& bias;   // [outputs()]
  std::span<const RowRange> int8_rows = {};

  int outputs() const;
};

// As linear() by each weight, the results side by side: x [M, K] -> [M, outputs()]. On CPU it is one
// task, whatever the formats.
mx::array linear(const mx::array& x, const Projection& projection);

// True if the device in use has int8 products.
bool multiplies_int8();

// As linear, from plain MLX operations on the dequantized float32 weight: the reference in tests,
// and the path on devices without our bodies.
mx::array linear_reference(
    const mx::array& x,
    const PackedWeight& weight,
    const std::optional<mx::array>& bias = std::nullopt
);

// Rows `ids` (int32, [M], each in [0, N)) of the weight -> [M, K], dequantized to float32.
mx::array embed(const mx::array& ids, const PackedWeight& weight);

}  // namespace saker::kernels
