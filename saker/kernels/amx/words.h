// SPDX-License-Identifier: Apache-2.0
#pragma once

// Vectors of 32 numbers of 16 bits, for what goes into tiles.

#include "saker/kernels/cpu/vec.h"

namespace saker::kernels::SAKER_ISA {

// The bf16 nearest to sixteen numbers and sixteen more, 32 in order; subnormal ones become zero.
[[gnu::always_inline]] inline U32x16 round_to_bf16(F32x16 first, F32x16 second) {
  return {__builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(second.v, first.v))};
}

// Word i is table's word number index[i] modulo 32.
[[gnu::always_inline]] inline U32x16 look_up_words(U32x16 table, U32x16 index) {
  return {_mm512_permutexvar_epi16(index.v, table.v)};
}

template <int n>
[[gnu::always_inline]] inline U32x16 shift_right_words(U32x16 a) {
  return {_mm512_srli_epi16(a.v, n)};
}

// The first or second half of a, twice.
template <int half>
[[gnu::always_inline]] inline U32x16 repeat_half(U32x16 a) {
  return {_mm512_shuffle_i32x4(a.v, a.v, half == 0 ? 0x44 : 0xee)};
}

// A number of 2 bytes in all lanes.
[[gnu::always_inline]] inline F32x16 broadcast_f16(const std::byte* p) {
  std::int16_t bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  return {_mm512_cvtph_ps(_mm256_set1_epi16(bits))};
}

// Sixteen bytes as numbers.
[[gnu::always_inline]] inline F32x16 load_bytes(const std::byte* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))};
}

// Lane j of line i changes places with lane i of line j.
inline void transpose(U32x16 (&lines)[16]) {
  __m512i pairs[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(lines[i].v, lines[i + 1].v);
    pairs[i + 1] = _mm512_unpackhi_epi32(lines[i].v, lines[i + 1].v);
  }
  // fours[4 i + j]: of lines 4 i to 4 i + 3, lane j of each four lanes.
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
