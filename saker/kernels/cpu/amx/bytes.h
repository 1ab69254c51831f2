// SPDX-License-Identifier: Apache-2.0
#pragma once

// Operands and results of byte tiles: int16, cut into an upper and a lower signed byte each; codes
// as bytes; sums of their products.

#include "saker/kernels/cpu/amx/tile.h"
#include "saker/kernels/cpu/amx/words.h"

namespace saker::kernels::SAKER_ISA {

// The lower halves of the lanes of a, then of b.
[[gnu::always_inline]] inline __m512i lower_halves(U32x16 a, U32x16 b) {
  struct Halves {
    std::uint16_t at[32];
  };

  alignas(64) static constexpr Halves kEven = [] {
    Halves index = {};
    for (int i = 0; i < 32; ++i) {
      index.at[i] = static_cast<std::uint16_t>(2 * i);
    }
    return index;
  }();
  return _mm512_permutex2var_epi16(a.v, _mm512_load_si512(kEven.at), b.v);
}

// Cuts 64 int16, the lower halves of lanes, into upper and lower signed bytes: writes 64 upper
// bytes and 64 lower ones. Byte i is from integer number Order::from(i).
template <typename Order>
[[gnu::always_inline]] inline void store_bytes_apart(
    const U32x16 (&integers)[4], std::byte* upper_bytes, std::byte* lower_bytes
) {
  alignas(64) static constexpr ByteLanes kLower = [] {
    ByteLanes index = {};
    for (int i = 0; i < 64; ++i) {
      index.at[i] = static_cast<std::uint8_t>(2 * Order::from(i));
    }
    return index;
  }();
  const __m512i rounding = _mm512_set1_epi16(0x80);
  const __m512i first = _mm512_add_epi16(lower_halves(integers[0], integers[1]), rounding);
  const __m512i second = _mm512_add_epi16(lower_halves(integers[2], integers[3]), rounding);
  const __m512i lower = _mm512_load_si512(kLower.at);
  const __m512i upper = _mm512_or_si512(lower, _mm512_set1_epi8(1));
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  const __m512i above = _mm512_permutex2var_epi8(first, upper, second);
  const __m512i below = _mm512_permutex2var_epi8(first, lower, second);
  _mm512_storeu_si512(upper_bytes, above);
  _mm512_storeu_si512(lower_bytes, _mm512_xor_si512(below, sign));
}

// Turns a line of words of 4-bit codes into two lines of a tile: the lower codes of all bytes, then
// the upper ones.
[[gnu::always_inline]] inline void store_nibbles(U32x16 words, std::uint32_t* to) {
  const U32x16 nibbles = broadcast_u32(0x0f0f0f0fU);
  store_u32(to, bit_and(words, nibbles));
  store_u32(to + kLanes, bit_and(shift_right<4>(words), nibbles));
}

// Sums of a tile.
using ByteSums = std::uint32_t[kTileHeight][kLanes];

// Combines the sums of the upper and lower bytes' products into those of the integers.
[[gnu::always_inline]] inline U32x16 integer_sums(
    const std::uint32_t* upper, const std::uint32_t* lower
) {
  return add_u32(shift_left<8>(load_u32(upper)), load_u32(lower));
}

}  // namespace saker::kernels::SAKER_ISA
