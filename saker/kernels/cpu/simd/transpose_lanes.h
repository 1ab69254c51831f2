// SPDX-License-Identifier: Apache-2.0
#pragma once

// Transposes sixteen vectors of AVX-512.

#include "saker/kernels/cpu/simd/vec.h"

namespace saker::kernels::SAKER_ISA {

// Swaps lane j of line i with lane i of line j.
inline void transpose(U32x16 (&lines)[16]) {
  __m512i pairs[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(lines[i].v, lines[i + 1].v);
    pairs[i + 1] = _mm512_unpackhi_epi32(lines[i].v, lines[i + 1].v);
  }
  // fours[4 i + j]: lane j of each group of four lanes, from lines 4 i to 4 i + 3.
  __m512i fours[16];
  for (int i = 0; i < 16; i += 4) {
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = _mm512_unpacklo_epi64(pairs[i + j], pairs[i + 2 + j]);
      fours[i + 2 * j + 1] = _mm512_unpackhi_epi64(pairs[i + j], pairs[i + 2 + j]);
    }
  }
  for (int j = 0; j < 4; ++j) {
    const __m512i low = _mm512_shuffle_i32x4(fours[j], fours[4 + j], 0x44);
    const __m512i high = _mm512_shuffle_i32x4(fours[j], fours[4 + j], 0xee);
    const __m512i next_low = _mm512_shuffle_i32x4(fours[8 + j], fours[12 + j], 0x44);
    const __m512i next_high = _mm512_shuffle_i32x4(fours[8 + j], fours[12 + j], 0xee);
    lines[j] = {_mm512_shuffle_i32x4(low, next_low, 0x88)};
    lines[4 + j] = {_mm512_shuffle_i32x4(low, next_low, 0xdd)};
    lines[8 + j] = {_mm512_shuffle_i32x4(high, next_high, 0x88)};
    lines[12 + j] = {_mm512_shuffle_i32x4(high, next_high, 0xdd)};
  }
}

}  // namespace saker::kernels::SAKER_ISA
