// SPDX-License-Identifier: Apache-2.0
#pragma once

// vec.h for AVX2 with FMA and F16C: two registers of eight lanes.

#include <immintrin.h>

#include <cstdint>

#define SAKER_INT16_DOT

namespace saker::kernels::SAKER_ISA {

inline constexpr bool kFusedMultiplyAdd = true;
inline constexpr bool kBf16Dot = false;

struct F32x16 {
  __m256 low;
  __m256 high;
};

struct U32x16 {
  __m256i low;
  __m256i high;
};

inline F32x16 as_float(U32x16 v) {
  return {_mm256_castsi256_ps(v.low), _mm256_castsi256_ps(v.high)};
}

inline U32x16 as_u32(F32x16 v) {
  return {_mm256_castps_si256(v.low), _mm256_castps_si256(v.high)};
}

inline F32x16 zero() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}

inline F32x16 broadcast(float value) {
  const __m256 v = _mm256_set1_ps(value);
  return {v, v};
}

inline U32x16 broadcast_u32(std::uint32_t value) {
  const __m256i v = _mm256_set1_epi32(static_cast<int>(value));
  return {v, v};
}

inline F32x16 load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

inline void store(float* p, F32x16 v) {
  _mm256_storeu_ps(p, v.low);
  _mm256_storeu_ps(p + 8, v.high);
}

inline U32x16 load_u32(const std::uint32_t* p) {
  const auto* at = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
}

inline U32x16 load_folded(const std::uint32_t* p) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {words, _mm256_srli_epi32(words, 8)};
}

inline void store_u32(std::uint32_t* p, U32x16 v) {
  auto* at = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(at, v.low);
  _mm256_storeu_si256(at + 1, v.high);
}

// All ones in the first n - first lanes of eight.
inline __m256i part_mask(int n, int first) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n - first), lane);
}

inline F32x16 load_part(const float* p, int n) {
  return {
      _mm256_maskload_ps(p, part_mask(n, 0)),
      n > 8 ? _mm256_maskload_ps(p + 8, part_mask(n, 8)) : _mm256_setzero_ps(),
  };
}

inline void store_part(float* p, F32x16 v, int n) {
  _mm256_maskstore_ps(p, part_mask(n, 0), v.low);
  if (n > 8) {
    _mm256_maskstore_ps(p + 8, part_mask(n, 8), v.high);
  }
}

inline F32x16 add(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

inline F32x16 sub(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}

inline F32x16 mul(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

inline F32x16 div(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}

inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}

inline F32x16 min(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

inline F32x16 max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}

inline F32x16 where_nan(F32x16 v, F32x16 a, F32x16 b) {
  return {
      _mm256_blendv_ps(b.low, a.low, _mm256_cmp_ps(v.low, v.low, _CMP_UNORD_Q)),
      _mm256_blendv_ps(b.high, a.high, _mm256_cmp_ps(v.high, v.high, _CMP_UNORD_Q)),
  };
}

inline F32x16 square_root(F32x16 v) {
  return {_mm256_sqrt_ps(v.low), _mm256_sqrt_ps(v.high)};
}

inline U32x16 add_u32(U32x16 a, U32x16 b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}

inline U32x16 sub_u32(U32x16 a, U32x16 b) {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}

inline U32x16 bit_and(U32x16 a, U32x16 b) {
  return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}

inline U32x16 bit_or(U32x16 a, U32x16 b) {
  return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}

template <int n>
inline U32x16 shift_left(U32x16 v) {
  return {_mm256_slli_epi32(v.low, n), _mm256_slli_epi32(v.high, n)};
}

template <int n>
inline U32x16 shift_right(U32x16 v) {
  return {_mm256_srli_epi32(v.low, n), _mm256_srli_epi32(v.high, n)};
}

template <int n>
inline U32x16 shift_right_signed(U32x16 v) {
  return {_mm256_srai_epi32(v.low, n), _mm256_srai_epi32(v.high, n)};
}

inline F32x16 look_up(const float (&table)[16], U32x16 v) {
  const __m256 first = _mm256_loadu_ps(table);
  const __m256 second = _mm256_loadu_ps(table + 8);
  const F32x16 bit = as_float(shift_left<28>(v));
  return {
      _mm256_blendv_ps(
          _mm256_permutevar8x32_ps(first, v.low), _mm256_permutevar8x32_ps(second, v.low), bit.low
      ),
      _mm256_blendv_ps(
          _mm256_permutevar8x32_ps(first, v.high),
          _mm256_permutevar8x32_ps(second, v.high),
          bit.high
      ),
  };
}

inline U32x16 look_up_bytes(const std::uint8_t (&table)[16], U32x16 v) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  const __m256i codes = _mm256_broadcastsi128_si256(bytes);
  return {_mm256_shuffle_epi8(codes, v.low), _mm256_shuffle_epi8(codes, v.high)};
}

inline F32x16 to_float(U32x16 v) {
  return {_mm256_cvtepi32_ps(v.low), _mm256_cvtepi32_ps(v.high)};
}

inline U32x16 to_int(F32x16 v) {
  return {_mm256_cvtps_epi32(v.low), _mm256_cvtps_epi32(v.high)};
}

inline U32x16 int16_pairs(U32x16 a, U32x16 b) {
  const auto halves = [](U32x16 v) {
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(v.low, v.high), 0b11011000);
  };
  return {halves(a), halves(b)};
}

// acc + a.even * b.even + a.odd * b.odd. One asm block: a compiler that may delay the addition
// needs a register for the product meanwhile, and spills sums to memory.
inline __m256i dot_int16_pairs(__m256i acc, __m256i a, __m256i b) {
  __m256i products;
  asm("vpmaddwd %[b], %[a], %[products]\n\tvpaddd %[products], %[acc], %[acc]"
      : [acc] "+x"(acc), [products] "=&x"(products)
      : [a] "x"(a), [b] "x"(b));
  return acc;
}

inline U32x16 dot_int16_pairs(U32x16 acc, U32x16 a, U32x16 b) {
  return {dot_int16_pairs(acc.low, a.low, b.low), dot_int16_pairs(acc.high, a.high, b.high)};
}

// Looks up the upper byte of each half; an arithmetic shift then moves it down.
template <int n>
inline U32x16 look_up_integers(const std::int8_t (&table)[16], U32x16 v) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  const __m256i values = _mm256_broadcastsi128_si256(bytes);
  U32x16 index = v;
  if constexpr (n < 2) {
    index = shift_left<8 - 4 * n>(v);
  } else if constexpr (n > 2) {
    index = shift_right<4 * n - 8>(v);
  }
  index = bit_and(index, broadcast_u32(0x0f000f00U));
  return {
      _mm256_srai_epi16(_mm256_shuffle_epi8(values, index.low), 8),
      _mm256_srai_epi16(_mm256_shuffle_epi8(values, index.high), 8),
  };
}

inline F32x16 even_bf16(U32x16 v) {
  return as_float(shift_left<16>(v));
}

inline F32x16 odd_bf16(U32x16 v) {
  return as_float(bit_and(v, broadcast_u32(0xffff0000U)));
}

inline F32x16 load_bf16(const std::uint16_t* p) {
  const auto* at = reinterpret_cast<const __m128i*>(p);
  const U32x16 wide = {
      _mm256_cvtepu16_epi32(_mm_loadu_si128(at)),
      _mm256_cvtepu16_epi32(_mm_loadu_si128(at + 1)),
  };
  return as_float(shift_left<16>(wide));
}

inline F32x16 load_f16(const std::uint16_t* p) {
  const auto* at = reinterpret_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(at)), _mm256_cvtph_ps(_mm_loadu_si128(at + 1))};
}

// The bf16 nearest to each lane, in the low half of each lane.
inline U32x16 to_bf16(F32x16 v) {
  const U32x16 bits = as_u32(v);
  const U32x16 odd = bit_and(shift_right<16>(bits), broadcast_u32(1));
  const U32x16 rounded = add_u32(add_u32(bits, broadcast_u32(0x7fffU)), odd);
  const U32x16 quiet = bit_or(bits, broadcast_u32(0x00400000U));
  return shift_right<16>(as_u32(where_nan(v, as_float(quiet), as_float(rounded))));
}

inline void store_bf16(std::uint16_t* p, F32x16 v) {
  const U32x16 bits = to_bf16(v);
  const __m256i packed = _mm256_packus_epi32(bits.low, bits.high);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0b11011000));
}

inline float reduce_add(F32x16 v) {
  const __m256 eight = _mm256_add_ps(v.low, v.high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

inline float reduce_max(F32x16 v) {
  const __m256 eight = _mm256_max_ps(v.low, v.high);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

}  // namespace saker::kernels::SAKER_ISA
