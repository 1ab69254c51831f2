// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts sixteen rows of bf16 by 32 columns from kTileOrder to the sixteen lines of pairs of
// kInterleavedNr16.

#include "saker/kernels/cpu/simd/unroll.h"
#include "saker/kernels/cpu/simd/vec.h"
#include "saker/kernels/layout/packed_matrix.h"

namespace saker::kernels::SAKER_ISA::int8 {

inline constexpr int kSquarePairs = kStepColumns / 2;  // As many as an NR block has rows.

// Interleaving line i with line i + 8, four times, transposes.
[[gnu::always_inline]] inline void transpose_pairs(U32x16 (&lines)[kSquarePairs]) {
  alignas(64) static constexpr std::uint32_t kLow[] = {
      0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
  };
  const U32x16 low = load_u32(kLow);
  const U32x16 high = add_u32(low, broadcast_u32(kSquarePairs / 2));
  unroll<4>([&](auto) {
    U32x16 mixed[kSquarePairs];
    unroll<kSquarePairs / 2>([&](auto i) {
      const U32x16 a = lines[i.kValue];
      const U32x16 b = lines[i.kValue + kSquarePairs / 2];
      mixed[2 * i.kValue] = permute_two(a, low, b);
      mixed[2 * i.kValue + 1] = permute_two(a, high, b);
    });
    unroll<kSquarePairs>([&](auto i) { lines[i.kValue] = mixed[i.kValue]; });
  });
}

// The lines of columns [k, k + 32) of a block; k is a multiple of 32.
[[gnu::always_inline]] inline void load_square(
    const PackedMatrix& weight, int block, int k, U32x16 (&words)[kSquarePairs]
) {
  const std::byte* row = weight.block(block) + k / kStepColumns * weight.tile_step_bytes();
  unroll<kSquarePairs>([&](auto i) {
    words[i.kValue] = load_u32(reinterpret_cast<const std::uint32_t*>(row));
    row += weight.tile_row_bytes();
  });
  transpose_pairs(words);
}

}  // namespace saker::kernels::SAKER_ISA::int8
