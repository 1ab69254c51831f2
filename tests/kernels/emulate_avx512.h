// SPDX-License-Identifier: Apache-2.0
#pragma once

// AVX-512 intrinsics for machines without them, so that tests run the AVX-512 kernels everywhere:
// SIMDe, and the few intrinsics that its packaged version lacks or does without the processor's
// rounding (dpbf16). The macros rename what immintrin.h declares, as SIMDe's own aliases do.

#include "tests/kernels/emulate_bytes.h"

#include <cstdint>

namespace saker::emulate {

inline __m512 maskz_loadu_ps(__mmask16 mask, const void* p) {
  float lanes[16] = {};
  for (int i = 0; i < 16; ++i) {
    if ((mask >> i & 1) != 0) {
      __builtin_memcpy(&lanes[i], static_cast<const char*>(p) + 4 * i, 4);
    }
  }
  return __builtin_bit_cast(__m512, lanes);
}

inline void mask_storeu_ps(void* p, __mmask16 mask, __m512 v) {
  struct Lanes {
    float at[16];
  };

  const auto lanes = __builtin_bit_cast(Lanes, v);
  for (int i = 0; i < 16; ++i) {
    if ((mask >> i & 1) != 0) {
      __builtin_memcpy(static_cast<char*>(p) + 4 * i, &lanes.at[i], 4);
    }
  }
}

inline __m512i cvtepu16_epi32(__m256i v) {
  return __builtin_bit_cast(
      __m512i,
      HalfPair{
          _mm256_cvtepu16_epi32(_mm256_castsi256_si128(v)),
          _mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1)),
      }
  );
}

inline __m512 cvtph_ps(__m256i v) {
  return __builtin_bit_cast(
      __m512,
      HalfPair{
          _mm256_castps_si256(_mm256_cvtph_ps(_mm256_castsi256_si128(v))),
          _mm256_castps_si256(_mm256_cvtph_ps(_mm256_extracti128_si256(v, 1))),
      }
  );
}

inline __m512 cvtepi32_ps(__m512i v) {
  const auto pair = __builtin_bit_cast(HalfPair, v);
  return __builtin_bit_cast(
      __m512,
      HalfPair{
          _mm256_castps_si256(_mm256_cvtepi32_ps(pair.low)),
          _mm256_castps_si256(_mm256_cvtepi32_ps(pair.high)),
      }
  );
}

inline __m512i srai_epi32(__m512i v, unsigned count) {
  const auto pair = __builtin_bit_cast(HalfPair, v);
  const int n = static_cast<int>(count);
  return __builtin_bit_cast(
      __m512i, HalfPair{_mm256_srai_epi32(pair.low, n), _mm256_srai_epi32(pair.high, n)}
  );
}

// The low half of each lane.
inline __m256i cvtepi32_epi16(__m512i v) {
  const auto pair = __builtin_bit_cast(HalfPair, v);
  const __m256i low = _mm256_set1_epi32(0xffff);
  const __m256i packed =
      _mm256_packus_epi32(_mm256_and_si256(pair.low, low), _mm256_and_si256(pair.high, low));
  return _mm256_permute4x64_epi64(packed, 0b11011000);
}

// Two quarters of a, then two of b, as pairs of bits say.
inline __m512 shuffle_f32x4(__m512 a, __m512 b, unsigned which) {
  struct Quarters {
    __m128 at[4];
  };

  const auto x = __builtin_bit_cast(Quarters, a);
  const auto y = __builtin_bit_cast(Quarters, b);
  return __builtin_bit_cast(
      __m512,
      Quarters{x.at[which & 3], x.at[which >> 2 & 3], y.at[which >> 4 & 3], y.at[which >> 6 & 3]}
  );
}

// As the processor does it: odd halves first, each step rounded once to even, subnormals read and
// written as zero.
inline __m512 dpbf16_ps(__m512 acc, __m512bh a, __m512bh b) {
  struct Lanes {
    float at[16];
  };

  struct Pairs {
    std::uint32_t at[16];
  };

  const auto value = [](std::uint32_t bits) {
    const bool subnormal = (bits & 0x7f800000U) == 0;
    return __builtin_bit_cast(float, subnormal ? bits & 0x80000000U : bits);
  };
  const auto step = [&](float x, float y, float sum) {
    const float exact = __builtin_fmaf(x, y, value(__builtin_bit_cast(std::uint32_t, sum)));
    return value(__builtin_bit_cast(std::uint32_t, exact));
  };
  auto lanes = __builtin_bit_cast(Lanes, acc);
  const auto x = __builtin_bit_cast(Pairs, a);
  const auto y = __builtin_bit_cast(Pairs, b);
  for (int i = 0; i < 16; ++i) {
    const float odd = step(value(x.at[i] & 0xffff0000U), value(y.at[i] & 0xffff0000U), lanes.at[i]);
    lanes.at[i] = step(value(x.at[i] << 16), value(y.at[i] << 16), odd);
  }
  return __builtin_bit_cast(__m512, lanes);
}

// The bf16 nearest to the lanes of b, then of a; subnormal numbers are read and written as zero.
inline __m512i cvtne2ps_pbh(__m512 a, __m512 b) {
  struct Lanes {
    std::uint32_t at[16];
  };

  struct Words {
    std::uint16_t at[32];
  };

  const auto rounded = [](std::uint32_t bits) {
    const std::uint32_t exponent = bits & 0x7f800000U;
    if (exponent == 0) {
      return bits >> 16 & 0x8000U;
    }
    if (exponent == 0x7f800000U) {
      return bits >> 16 | ((bits & 0x7fffffU) != 0 ? 0x40U : 0U);
    }
    return (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
  };
  const auto first = __builtin_bit_cast(Lanes, b);
  const auto second = __builtin_bit_cast(Lanes, a);
  Words words;
  for (int i = 0; i < 16; ++i) {
    words.at[i] = static_cast<std::uint16_t>(rounded(first.at[i]));
    words.at[16 + i] = static_cast<std::uint16_t>(rounded(second.at[i]));
  }
  return __builtin_bit_cast(__m512i, words);
}

}  // namespace saker::emulate

// NOLINTBEGIN(readability-identifier-naming): the names are given.
#undef _mm512_maskz_loadu_ps
#define _mm512_maskz_loadu_ps saker::emulate::maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#define _mm512_mask_storeu_ps saker::emulate::mask_storeu_ps
#undef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32 saker::emulate::cvtepu16_epi32
#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps saker::emulate::cvtph_ps
#undef _mm512_srai_epi32
#define _mm512_srai_epi32 saker::emulate::srai_epi32
#undef _mm512_cvtepi32_epi16
#define _mm512_cvtepi32_epi16 saker::emulate::cvtepi32_epi16
#undef _mm512_shuffle_f32x4
#define _mm512_shuffle_f32x4 saker::emulate::shuffle_f32x4
#undef _mm512_dpbf16_ps
#define _mm512_dpbf16_ps saker::emulate::dpbf16_ps
#undef _mm512_cvtne2ps_pbh
#define _mm512_cvtne2ps_pbh saker::emulate::cvtne2ps_pbh
#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps saker::emulate::cvtepi32_ps
// NOLINTEND(readability-identifier-naming)
