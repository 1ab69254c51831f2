// SPDX-License-Identifier: Apache-2.0
#pragma once

// Vectors of 32 numbers of 16 bits, for data that goes into tiles.

#include "saker/kernels/cpu/simd/vec.h"
#include "saker/kernels/layout/lanes.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels::SAKER_ISA {

// Word i is word number index[i] modulo 32 of `table`.
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

// The low four bits of each word; bit 4 is set for words in the second half.
[[gnu::always_inline]] inline U32x16 name_halves(U32x16 a) {
  struct Lanes {
    std::uint32_t bits[kLanes];
  };

  alignas(64) static constexpr Lanes kSecond = [] {
    Lanes lanes = {};
    for (int lane = kLanes / 2; lane < kLanes; ++lane) {
      lanes.bits[lane] = 0x00100010U;
    }
    return lanes;
  }();
  return bit_or(bit_and(a, broadcast_u32(0x000f000fU)), load_u32(kSecond.bits));
}

struct ByteLanes {
  std::uint8_t at[64];
};

// The sources of the upper bytes of lanes: bytes from 16 * kQuarter on.
template <int kQuarter>
alignas(64) inline constexpr ByteLanes kQuarterBytes = [] {
  ByteLanes from = {};
  for (int lane = 0; lane < kLanes; ++lane) {
    from.at[4 * lane + 3] = static_cast<std::uint8_t>(kLanes * kQuarter + lane);
  }
  return from;
}();

// Bytes from 16 * kQuarter on of the words, as the upper bytes of lanes; zeros below.
template <int kQuarter>
[[gnu::always_inline]] inline U32x16 upper_bytes(U32x16 words) {
  constexpr std::uint64_t kUpperBytes = 0x8888888888888888U;
  const ByteLanes& lanes = kQuarterBytes<kQuarter>;
  const __m512i from = _mm512_load_si512(lanes.at);
  return {_mm512_maskz_permutexvar_epi8(kUpperBytes, from, words.v)};
}

}  // namespace saker::kernels::SAKER_ISA
