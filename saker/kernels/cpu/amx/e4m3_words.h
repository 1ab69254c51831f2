// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts codes of E4M3 to bf16 by looking up both bytes of a magnitude, 64 codes at a time.

#include "saker/kernels/cpu/amx/words.h"
#include "saker/kernels/packing/codes.h"

#include <array>
#include <bit>
#include <cstdint>

namespace saker::kernels::SAKER_ISA {

// One byte of the bf16 of each of the 128 magnitudes, times kUnit.
template <bool kUpper>
alignas(64) inline constexpr std::array<std::uint8_t, 128> kE4m3Bytes = [] {
  std::array<std::uint8_t, 128> bytes = {};
  for (unsigned code = 0; code < 128; ++code) {
    // The NaN code counts as 480, see group_scale in packing/codes.h.
    const float value = code == 127 ? 480.0F : e4m3_value(code);
    const std::uint16_t word = bf16_of(value * 0x1p119F);
    bytes[code] = static_cast<std::uint8_t>(kUpper ? word >> 8 : word & 0xff);
  }
  return bytes;
}();

class E4m3Words {
 public:
  // The largest scale whose products with all codes are finite. Tables hold magnitudes times kUnit,
  // so that a smaller scale only subtracts from exponents. Results below the smallest number become
  // 0.
  static constexpr float kUnit = 0x1p119F;

  [[gnu::always_inline]] explicit E4m3Words(U32x16 codes) {
    // After this order, unpacking (eight bytes of every sixteen) leaves columns in order.
    const __m512i order = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
    const __m512i v = _mm512_permutexvar_epi64(order, codes.v);
    const __m512i lower = look_up<false>(v);
    const __m512i upper = look_up<true>(v);
    magnitudes_[0] = _mm512_unpacklo_epi8(lower, upper);
    magnitudes_[1] = _mm512_unpackhi_epi8(lower, upper);
    // The bits below the sign do not matter.
    signs_[0] = _mm512_unpacklo_epi8(v, v);
    signs_[1] = _mm512_unpackhi_epi8(v, v);
  }

  // The first or second 32 codes times `scale`, a power of two of at most kUnit.
  template <int half>
  [[gnu::always_inline]] U32x16 times(float scale) const {
    constexpr std::uint32_t kExponent = std::bit_cast<std::uint32_t>(kUnit) >> 23U;
    // A scale of 2^-127, which is subnormal, has an exponent of 0.
    const std::uint32_t less = kExponent - (std::bit_cast<std::uint32_t>(scale) >> 23U);
    const __m512i words =
        _mm512_subs_epu16(magnitudes_[half], _mm512_set1_epi16(static_cast<short>(less << 7U)));
    const U32x16 sign = bit_and({signs_[half]}, broadcast_u32(0x80008000U));
    return bit_or({words}, sign);
  }

 private:
  template <bool kUpper>
  [[gnu::always_inline]] static __m512i look_up(__m512i codes) {
    const auto& bytes = kE4m3Bytes<kUpper>;
    // Only the lower seven bits of an index are used.
    return _mm512_permutex2var_epi8(
        _mm512_load_si512(bytes.data()), codes, _mm512_load_si512(bytes.data() + 64)
    );
  }

  __m512i magnitudes_[2];
  __m512i signs_[2];
};

}  // namespace saker::kernels::SAKER_ISA
