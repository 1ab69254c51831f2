// SPDX-License-Identifier: Apache-2.0
#pragma once

// vec.h for AVX-512 (F, BW, VL, DQ), VNNI, and BF16 with VBMI where the set has them: one register
// of sixteen lanes. With SAKER_EMULATE_AVX512 (tests only) the intrinsics are emulated, so that any
// x86 machine can test this code.

#if defined(SAKER_EMULATE_AVX512)
#include "tests/kernels/emulate_avx512.h"
#else
#include <immintrin.h>
#endif

#include <cstdint>

#define SAKER_INT16_DOT
#define SAKER_TRANSPOSES  // See cpu/simd/transpose_lanes.h.
#if defined(SAKER_EMULATE_BF16) || defined(__AVX512VNNI__)
#define SAKER_BYTE_DOT
#endif
#if defined(SAKER_EMULATE_BF16) || defined(__AVX512BF16__)
#define SAKER_BF16_DOT
#define SAKER_PICKS_BYTES
#define SAKER_WINOGRAD  // See cpu/gemm/winograd.h; processors with BF16 may be AMD's.
#define SAKER_IN_PLACE  // bf16 weights may stay as the checkpoint has them, see cpu/gemm/bf16_panels.h.
#endif

namespace saker::kernels::SAKER_ISA {

inline constexpr bool kFusedMultiplyAdd = true;
#if defined(SAKER_BF16_DOT)
inline constexpr bool kBf16Dot = true;
#else
inline constexpr bool kBf16Dot = false;
#endif

struct F32x16 {
  __m512 v;
};

struct U32x16 {
  __m512i v;
};

inline F32x16 as_float(U32x16 a) {
  return {_mm512_castsi512_ps(a.v)};
}

inline U32x16 as_u32(F32x16 a) {
  return {_mm512_castps_si512(a.v)};
}

inline F32x16 zero() {
  return {_mm512_setzero_ps()};
}

inline F32x16 broadcast(float value) {
  return {_mm512_set1_ps(value)};
}

inline U32x16 broadcast_u32(std::uint32_t value) {
  return {_mm512_set1_epi32(static_cast<int>(value))};
}

inline F32x16 load(const float* p) {
  return {_mm512_loadu_ps(p)};
}

inline void store(float* p, F32x16 a) {
  _mm512_storeu_ps(p, a.v);
}

inline U32x16 load_u32(const std::uint32_t* p) {
  return {_mm512_loadu_si512(p)};
}

// Its value stays in a register. A compiler may else load memory again for each use, which takes
// longer where lines of a cache are crossed.
inline U32x16 keep(U32x16 a) {
#if !defined(SAKER_EMULATE_AVX512)
  asm("" : "+v"(a.v));
#endif
  return a;
}

inline U32x16 load_folded(const std::uint32_t* p) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m512i shifts = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8);
  return {_mm512_srlv_epi32(_mm512_broadcast_i64x4(words), shifts)};
}

inline void store_u32(std::uint32_t* p, U32x16 a) {
  _mm512_storeu_si512(p, a.v);
}

inline __mmask16 part_mask(int n) {
  return static_cast<__mmask16>((1U << n) - 1U);
}

inline F32x16 load_part(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(part_mask(n), p)};
}

inline void store_part(float* p, F32x16 a, int n) {
  _mm512_mask_storeu_ps(p, part_mask(n), a.v);
}

inline F32x16 add(F32x16 a, F32x16 b) {
  return {_mm512_add_ps(a.v, b.v)};
}

inline F32x16 sub(F32x16 a, F32x16 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}

inline F32x16 mul(F32x16 a, F32x16 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}

inline F32x16 div(F32x16 a, F32x16 b) {
  return {_mm512_div_ps(a.v, b.v)};
}

inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}

inline F32x16 min(F32x16 a, F32x16 b) {
  return {_mm512_min_ps(a.v, b.v)};
}

inline F32x16 max(F32x16 a, F32x16 b) {
  return {_mm512_max_ps(a.v, b.v)};
}

inline F32x16 where_nan(F32x16 a, F32x16 x, F32x16 y) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q), y.v, x.v)};
}

inline F32x16 square_root(F32x16 a) {
  return {_mm512_sqrt_ps(a.v)};
}

inline U32x16 add_u32(U32x16 a, U32x16 b) {
  return {_mm512_add_epi32(a.v, b.v)};
}

inline U32x16 sub_u32(U32x16 a, U32x16 b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}

inline U32x16 bit_and(U32x16 a, U32x16 b) {
  return {_mm512_and_si512(a.v, b.v)};
}

inline U32x16 bit_or(U32x16 a, U32x16 b) {
  return {_mm512_or_si512(a.v, b.v)};
}

template <int n>
inline U32x16 shift_left(U32x16 a) {
  return {_mm512_slli_epi32(a.v, n)};
}

template <int n>
inline U32x16 shift_right(U32x16 a) {
  return {_mm512_srli_epi32(a.v, n)};
}

template <int n>
inline U32x16 shift_right_signed(U32x16 a) {
  return {_mm512_srai_epi32(a.v, n)};
}

// Lane i is lane index[i] of the 32 lanes of a, then b.
inline U32x16 permute_two(U32x16 a, U32x16 index, U32x16 b) {
  return {_mm512_permutex2var_epi32(a.v, index.v, b.v)};
}

inline F32x16 look_up(const float (&table)[16], U32x16 index) {
  return {_mm512_permutexvar_ps(index.v, _mm512_loadu_ps(table))};
}

inline U32x16 look_up_bytes(const std::uint8_t (&table)[16], U32x16 names) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  const __m512i codes = _mm512_broadcast_i32x4(bytes);
  return {_mm512_shuffle_epi8(codes, names.v)};
}

inline F32x16 to_float(U32x16 a) {
  return {_mm512_cvtepi32_ps(a.v)};
}

inline U32x16 to_int(F32x16 a) {
  return {_mm512_cvtps_epi32(a.v)};
}

inline U32x16 int16_pairs(U32x16 a, U32x16 b) {
  const __m512i first = _mm512_castsi256_si512(_mm512_cvtepi32_epi16(a.v));
  return {_mm512_inserti64x4(first, _mm512_cvtepi32_epi16(b.v), 1)};
}

inline U32x16 dot_int16_pairs(U32x16 acc, U32x16 a, U32x16 b) {
#if defined(SAKER_EMULATE_BF16)
  return {_mm512_dpwssd_epi32(acc.v, a.v, b.v)};
#elif defined(SAKER_EMULATE_AVX512)
  return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(a.v, b.v))};
#elif defined(__AVX512VNNI__)
  asm("vpdpwssd %[b], %[a], %[acc]" : [acc] "+v"(acc.v) : [a] "v"(a.v), [b] "v"(b.v));
  return acc;
#else
  __m512i products;  // One asm block, see vec_avx2.h.
  asm("vpmaddwd %[b], %[a], %[products]\n\tvpaddd %[products], %[acc], %[acc]"
      : [acc] "+v"(acc.v), [products] "=&v"(products)
      : [a] "v"(a.v), [b] "v"(b.v));
  return acc;
#endif
}

#if defined(SAKER_WINOGRAD)
inline U32x16 dot_int16_sums(U32x16 acc, U32x16 a, U32x16 b, U32x16 c, U32x16 d) {
#if defined(SAKER_EMULATE_AVX512)
  return {_mm512_dpwssd_epi32(acc.v, _mm512_add_epi16(a.v, b.v), _mm512_add_epi16(c.v, d.v))};
#else
  __m512i first;
  __m512i second;  // One asm block, so that neither waits in a register.
  asm("vpaddw %[b], %[a], %[first]\n\tvpaddw %[d], %[c], %[second]\n\t"
      "vpdpwssd %[second], %[first], %[acc]"
      : [acc] "+v"(acc.v), [first] "=&v"(first), [second] "=&v"(second)
      : [a] "v"(a.v), [b] "v"(b.v), [c] "v"(c.v), [d] "v"(d.v));
  return acc;
#endif
}

// Pins a vector to its register; compilers would otherwise read it from memory for each use.
inline void pin_register(U32x16& a) {
#if !defined(SAKER_EMULATE_AVX512)
  asm("" : "+v"(a.v));
#else
  static_cast<void>(a);
#endif
}
#endif

#if defined(SAKER_BYTE_DOT)
inline U32x16 dot_bytes(U32x16 acc, U32x16 a, U32x16 b) {
#if defined(SAKER_EMULATE_AVX512)
  return {_mm512_dpbusd_epi32(acc.v, a.v, b.v)};
#else
  asm("vpdpbusd %[b], %[a], %[acc]" : [acc] "+v"(acc.v) : [a] "v"(a.v), [b] "v"(b.v));
  return acc;
#endif
}
#endif

// The table is there twice, since the processor uses five bits of each half.
template <int n>
inline U32x16 look_up_integers(const std::int8_t (&table)[16], U32x16 a) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  const __m512i values = _mm512_cvtepi8_epi16(_mm256_broadcastsi128_si256(bytes));
  return {_mm512_permutexvar_epi16(shift_right<4 * n>(a).v, values)};
}

inline F32x16 even_bf16(U32x16 a) {
  return as_float(shift_left<16>(a));
}

inline F32x16 odd_bf16(U32x16 a) {
  return as_float(bit_and(a, broadcast_u32(0xffff0000U)));
}

inline F32x16 load_bf16(const std::uint16_t* p) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return as_float(shift_left<16>(U32x16{_mm512_cvtepu16_epi32(halves)}));
}

inline F32x16 load_f16(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}

// The bf16 nearest to each lane, in the low half of each lane.
inline U32x16 to_bf16(F32x16 a) {
  const U32x16 bits = as_u32(a);
  const U32x16 odd = bit_and(shift_right<16>(bits), broadcast_u32(1));
  const U32x16 rounded = add_u32(add_u32(bits, broadcast_u32(0x7fffU)), odd);
  const U32x16 quiet = bit_or(bits, broadcast_u32(0x00400000U));
  return shift_right<16>(as_u32(where_nan(a, as_float(quiet), as_float(rounded))));
}

inline void store_bf16(std::uint16_t* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(to_bf16(a).v));
}

inline __m256 low_half(__m512 a) {
  return _mm512_castps512_ps256(a);
}

inline __m256 high_half(__m512 a) {
  return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1));
}

inline float reduce_add(F32x16 a) {
  const __m256 eight = _mm256_add_ps(low_half(a.v), high_half(a.v));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

inline float reduce_max(F32x16 a) {
  const __m256 eight = _mm256_max_ps(low_half(a.v), high_half(a.v));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

#if defined(SAKER_BF16_DOT)
inline F32x16 dot_bf16_pairs(F32x16 acc, U32x16 a, U32x16 b) {
  return {
      _mm512_dpbf16_ps(acc.v, __builtin_bit_cast(__m512bh, a.v), __builtin_bit_cast(__m512bh, b.v))
  };
}

// Adds the lanes of eight vectors, except for the last addition. Lanes 0-3 and 4-7 of the result
// hold two parts of the sums of a[0] to a[3]; the other eight lanes hold those of a[4] to a[7].
[[gnu::always_inline]] inline F32x16 half_sums(const F32x16 (&a)[8]) {
  const auto add_pairs = [](F32x16 x, F32x16 y) -> F32x16 {
    return {_mm512_add_ps(_mm512_unpacklo_ps(x.v, y.v), _mm512_unpackhi_ps(x.v, y.v))};
  };
  const auto add_fours = [&](F32x16 x, F32x16 y) -> F32x16 {
    const __m512d low = _mm512_castps_pd(x.v);
    const __m512d high = _mm512_castps_pd(y.v);
    return {_mm512_add_ps(
        _mm512_castpd_ps(_mm512_unpacklo_pd(low, high)),
        _mm512_castpd_ps(_mm512_unpackhi_pd(low, high))
    )};
  };
  const F32x16 first = add_fours(add_pairs(a[0], a[1]), add_pairs(a[2], a[3]));
  const F32x16 second = add_fours(add_pairs(a[4], a[5]), add_pairs(a[6], a[7]));
  return {_mm512_add_ps(
      _mm512_shuffle_f32x4(first.v, second.v, 0b01000100),
      _mm512_shuffle_f32x4(first.v, second.v, 0b11101110)
  )};
}

// The eight sums from half_sums, in lanes 0-7 and again in lanes 8-15.
[[gnu::always_inline]] inline F32x16 whole_sums(F32x16 halves) {
  return {_mm512_add_ps(
      _mm512_shuffle_f32x4(halves.v, halves.v, 0b10001000),
      _mm512_shuffle_f32x4(halves.v, halves.v, 0b11011101)
  )};
}

// Floats of bytes kFirst and kFirst + 2 of lanes [kLane, kLane + 8), lane by lane.
template <int kFirst, int kLane>
[[gnu::always_inline]] inline __m512 floats_of_bytes(U32x16 words) {
  struct Bytes {
    std::uint8_t at[64];
  };

  alignas(64) static constexpr Bytes kFrom = [] {
    Bytes from = {};
    for (int i = 0; i < 16; ++i) {
      from.at[4 * i] = static_cast<std::uint8_t>(4 * (kLane + i / 2) + kFirst + i % 2 * 2);
    }
    return from;
  }();
  constexpr __mmask64 kLowBytes = 0x1111111111111111U;
  const __m512i from = _mm512_load_si512(kFrom.at);
  return _mm512_cvtepi32_ps(_mm512_maskz_permutexvar_epi8(kLowBytes, from, words.v));
}

template <int kFirst>
[[gnu::always_inline]] inline U32x16 bf16_of_bytes(U32x16 words) {
  const __m512 low = floats_of_bytes<kFirst, 0>(words);
  const __m512 high = floats_of_bytes<kFirst, 8>(words);
  return {__builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(high, low))};
}

inline U32x16 bf16_pairs(F32x16 first, F32x16 second) {
  return {__builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(second.v, first.v))};
}

inline F32x16 round_to_bf16(F32x16 a) {
  const __m256i halves = _mm512_castsi512_si256(bf16_pairs(a, a).v);
  return as_float(shift_left<16>({_mm512_cvtepu16_epi32(halves)}));
}
#endif

}  // namespace saker::kernels::SAKER_ISA
