// SPDX-License-Identifier: Apache-2.0
#pragma once

// Part of emulate_avx512.h: whole numbers, and VNNI's products of bytes.

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include <cstdint>

namespace saker::emulate {

struct HalfPair {
  __m256i low;
  __m256i high;
};

inline __m512i cvtps_epi32(__m512 v) {
  const auto pair = __builtin_bit_cast(HalfPair, v);
  return __builtin_bit_cast(
      __m512i,
      HalfPair{
          _mm256_cvtps_epi32(_mm256_castsi256_ps(pair.low)),
          _mm256_cvtps_epi32(_mm256_castsi256_ps(pair.high)),
      }
  );
}

// acc + the products of four unsigned bytes of a and signed ones of b.
inline __m512i dpbusd_epi32(__m512i acc, __m512i a, __m512i b) {
  struct Words {
    std::uint32_t at[16];
  };

  auto sums = __builtin_bit_cast(Words, acc);
  const auto x = __builtin_bit_cast(Words, a);
  const auto y = __builtin_bit_cast(Words, b);
  for (int i = 0; i < 16; ++i) {
    for (int shift = 0; shift < 32; shift += 8) {
      const int product =
          static_cast<std::uint8_t>(x.at[i] >> shift) * static_cast<std::int8_t>(y.at[i] >> shift);
      sums.at[i] += static_cast<std::uint32_t>(product);
    }
  }
  return __builtin_bit_cast(__m512i, sums);
}

}  // namespace saker::emulate

// NOLINTBEGIN(readability-identifier-naming)
#undef _mm512_cvtps_epi32
#define _mm512_cvtps_epi32 saker::emulate::cvtps_epi32
#undef _mm512_dpbusd_epi32
#define _mm512_dpbusd_epi32 saker::emulate::dpbusd_epi32
#undef _mm512_madd_epi16
#define _mm512_madd_epi16 simde_mm512_madd_epi16
// NOLINTEND(readability-identifier-naming)
