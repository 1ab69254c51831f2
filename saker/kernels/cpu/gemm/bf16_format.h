// SPDX-License-Identifier: Apache-2.0
#pragma once

// BFloat16Format (cpu/gemm/formats.h) for sets whose bf16 weights lie in rows.

#include "saker/kernels/cpu/gemm/bf16_few_rows.h"
#include "saker/kernels/cpu/gemm/bf16_many_rows.h"

namespace saker::kernels::SAKER_ISA {
namespace dots {

// `count` values that lie `stride` apart, then zeros; only zeros if count is negative.
inline F32x16 load_strided(const float* from, std::ptrdiff_t stride, int count) {
  alignas(64) float values[kBlockRows] = {};
  for (int i = 0; i < count; ++i) {
    values[i] = from[i * stride];
  }
  return load(values);
}

template <int kRows = kFewRows>
void multiply(const PackedMatrix& weight, const LinearTile& tile) {
  if constexpr (kRows == 0) {
    multiply_many(weight, tile);
  } else if (tile.micro_panels.count == 1 && tile.micro_panels.rows == kRows) {
    multiply_few<kRows>(weight, tile);
  } else {
    multiply<kRows - 1>(weight, tile);
  }
}

}  // namespace dots

inline std::size_t BFloat16Format::row_bytes(const PackedMatrix& weight) {
  return dots::input_row_bytes(weight);
}

inline void BFloat16Format::prepare(
    const PackedMatrix& weight,
    const InputRows& x,
    const MicroPanels& micro_panels,
    int micro_panel,
    std::byte* prepared
) {
  const int end = dots::steps_of(weight) * kStepColumns;
  for (int row = micro_panels.first_row(micro_panel); row < micro_panels.first_row(micro_panel + 1);
       ++row) {
    auto* to = reinterpret_cast<std::uint16_t*>(prepared + row * row_bytes(weight));
    const float* from = x.data + row * x.row_stride;
    for (int k = 0; k < end; k += kBlockRows) {
      const int count = smaller(kBlockRows, weight.columns - k);
      const F32x16 lanes =
          count == kBlockRows && x.column_stride == 1
              ? load(from + k)
              : dots::load_strided(from + k * x.column_stride, x.column_stride, count);
      store_bf16(to + k, lanes);
    }
  }
}

inline void BFloat16Format::multiply(const PackedMatrix& weight, const LinearTile& tile) {
  dots::multiply(weight, tile);
}

}  // namespace saker::kernels::SAKER_ISA
