// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sixteen float32 lanes (F32x16) and sixteen uint32 lanes (U32x16) in the registers of the
// instruction set for which the including source is compiled. Only sources listed by
// saker_isa_sources include this.
//
// Everything lies in namespace saker::kernels::<SAKER_ISA>, so that one set's inline functions
// never replace another's at link time. For the same reason such sources instantiate nothing from
// std. Loads and stores need no alignment. Each operation rounds as IEEE says. The exception is
// fma(a, b, c) = a * b + c: it rounds once where the set has FMA, twice in the portable one. So
// bits agree within a set only. kFusedMultiplyAdd is true where it rounds once.
//
// Functions of every set:
//   zero() broadcast(f) load(p) store(p, v)
//   load_part(p, n) store_part(p, v, n)             n <= 16 lanes, the rest zero or left alone
//   load_folded(p)                                  8 words, then these shifted right by 8
//   load_bf16(p) load_f16(p) store_bf16(p, v)       16 values of 2 bytes, round to even
//   add sub mul div fma square_root
//   min(a, b) max(a, b)                             b when either is NaN
//   load_u32 store_u32 broadcast_u32 add_u32 sub_u32 bit_and bit_or
//   look_up(table, u)                               of 16 values, the one that the low 4 bits name
//   look_up_bytes(table, u)                         of 16 bytes, those that the bytes of u name, which
//                                                   are below 16
//   shift_left<n> shift_right<n> shift_right_signed<n>
//   to_float(u)                                     exact for values below 2^24
//   as_float(u) as_u32(f)                           the same bits
//   even_bf16(u) odd_bf16(u)                        low and high half of each lane as float32
//   bf16_of_bytes<n>(u)                             bytes n and n + 2 of each lane (n is 0 or 1) as
//                                                   bf16, which has all whole numbers up to 256
//   reduce_add reduce_max                           a fixed tree: lanes i and i + 8, then 4, 2, 1
//   where_nan(v, a, b)                              a in lanes where v is NaN, else b
//
// Only on ARM with bf16:
//   look_up_pairs(table, u)                         of 16 values of 2 bytes, the one that the low
//                                                   4 bits of each half name
//
// Only where kBf16Dot (SAKER_BF16_DOT for code that must not be compiled elsewhere):
//   dot_bf16_pairs(acc, a, b)                       see below
//   bf16_pairs(f, g)                                the nearest bf16 of the lanes of f, then of g,
//                                                   two neighbours a word
//   round_to_bf16(f)                                the nearest bf16 as float32
//   In the last two, numbers below 2^-126 may become 0.
//
// Only where SAKER_INT16_DOT:
//   to_int(f)                                       the nearest whole number, to even; -2^31 for
//                                                   NaN and numbers out of range
//   int16_pairs(u, v)                               the lanes of u, then of v, whole numbers of 16
//                                                   bits, two neighbours a word
//   dot_int16_pairs(acc, a, b)                      acc + the products of the two signed halves of
//                                                   each lane
//   look_up_integers<n>(table, u)                   of 16 signed bytes (the first is 0), the one
//                                                   that bits 4 n to 4 n + 3 of each half name,
//                                                   as integers of 16 bits
//
// Only where SAKER_WINOGRAD:
//   dot_int16_sums(acc, a, b, c, d)                 dot_int16_pairs of a + b and c + d, the sums of
//                                                   their halves
//   pin_register(u)                                 keeps u in a register
//
// Only in AVX-512:
//   permute_two(a, index, b)                        the lanes of a, then of b, that index names
//   half_sums(a) whole_sums(h)                      with BF16: the lanes of each of eight vectors
//                                                   added, 2 apart, 1, 8, then 4
//
// Only where SAKER_BYTE_DOT:
//   dot_bytes(acc, a, b)                            acc + the products of four unsigned bytes of a
//                                                   and signed bytes of b
//
// dot_bf16_pairs is acc + a.odd * b.odd + a.even * b.even, with numbers below 2^-126 as 0. AVX-512
// fuses one product after the other, the odd one first, each rounded to nearest. ARM rounds each
// product, their sum, and that plus acc, each to odd (Arm Architecture Reference Manual, BFDOT).

#include <cstddef>
#include <cstdint>

#if !defined(SAKER_ISA)
#error "vec.h is only for sources of one instruction set, see cmake/isa.cmake"
#endif

#if defined(SAKER_EMULATE_AVX512) || defined(__AVX512F__)
#include "saker/kernels/cpu/simd/vec_avx512.h"
#elif defined(__AVX2__)
#include "saker/kernels/cpu/simd/vec_avx2.h"
#elif defined(SAKER_NEON)
#include "saker/kernels/cpu/simd/vec_neon.h"
#else
#include "saker/kernels/cpu/simd/vec_portable.h"
#endif

namespace saker::kernels::SAKER_ISA {

#if defined(SAKER_INT16_DOT)
inline constexpr bool kInt16Dot = true;
#else
inline constexpr bool kInt16Dot = false;
#endif

#if defined(SAKER_WINOGRAD)
inline constexpr bool kWinogradDot = true;
#else
inline constexpr bool kWinogradDot = false;
#endif

// True if one register holds 16 lanes: then there are 32 registers; else 16 of 8 lanes or fewer.
inline constexpr bool kWideRegisters = alignof(F32x16) == 64;

}  // namespace saker::kernels::SAKER_ISA

#if !defined(SAKER_PICKS_BYTES)
namespace saker::kernels::SAKER_ISA {

// A whole number's bf16 is the upper half of its float32.
template <int kFirst>
[[gnu::always_inline]] inline U32x16 bf16_of_bytes(U32x16 words) {
  const U32x16 low = broadcast_u32(0xffU);
  const U32x16 even = kFirst == 0 ? words : shift_right<8>(words);
  const U32x16 odd = kFirst == 0 ? bit_and(shift_right<16>(words), low) : shift_right<24>(words);
  return bit_or(shift_right<16>(as_u32(to_float(bit_and(even, low)))), as_u32(to_float(odd)));
}

}  // namespace saker::kernels::SAKER_ISA
#endif
