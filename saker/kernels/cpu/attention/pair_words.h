// SPDX-License-Identifier: Apache-2.0
#pragma once

// Words of a page as the pairs that a set multiplies: bf16 elements, or codes of a quantized page
// (code_block.h has their layout) in bf16 or as int16. Nothing is rounded.

#include "saker/kernels/cpu/simd/vec.h"

#include <cstdint>
#include <utility>

namespace saker::kernels::SAKER_ISA {

// Calls function<0>() to function<count - 1>().
template <int count, typename Function>
[[gnu::always_inline]] inline void each_index(const Function& function) {
  [&]<int... indices>(std::integer_sequence<int, indices...>) {
    (function.template operator()<indices>(), ...);
  }(std::make_integer_sequence<int, count>{});
}

// The middle of all codes of `bits` bits, and the offset added to codes when they become bf16.
constexpr float middle_code(int bits) {
  return static_cast<float>((1 << bits) - 1) / 2;
}

constexpr float code_offset(int bits) {
  return bits == 4 ? 16.0F : 0.0F;
}

// How pairs of bf16 are multiplied and summed in sixteen lanes.
struct Bf16Dot {
  using Sum = F32x16;

#if defined(SAKER_BF16_DOT)
  [[gnu::always_inline]] static Sum add(Sum sum, U32x16 pairs, U32x16 factors) {
    return dot_bf16_pairs(sum, pairs, factors);
  }
#endif
};

// Words that hold one pair each.
struct PlainWords : Bf16Dot {
  static constexpr int kPairs = 1;

  template <int kPair>
  [[gnu::always_inline]] static U32x16 pair(U32x16 words) {
    return words;
  }
};

// Words of codes. A 4-bit code becomes 16 + code, with its bits right behind the leading one: two
// instructions for 32 codes.
template <int kBits>
struct CodeWords : Bf16Dot {
  static constexpr int kPairs = 16 / kBits;

  template <int kPair>
  [[gnu::always_inline]] static U32x16 pair(U32x16 words) {
    if constexpr (kBits == 4) {
      constexpr int kFirst = 3;  // Place of the four bits in the seven of a bf16.
      const U32x16 mask = broadcast_u32(0x00780078U);
      const U32x16 sixteen = broadcast_u32(0x41804180U);
      if constexpr (4 * kPair < kFirst) {
        return bit_or(bit_and(shift_left<kFirst - 4 * kPair>(words), mask), sixteen);
      } else {
        return bit_or(bit_and(shift_right<4 * kPair - kFirst>(words), mask), sixteen);
      }
    } else {
      static_assert(kBits == 8);
      return bf16_of_bytes<kPair>(words);
    }
  }
};

#if defined(SAKER_INT16_DOT)
// Words of codes as integers.
template <int kBits>
struct IntegerCodes {
  using Sum = U32x16;
  static constexpr int kPairs = 16 / kBits;

  template <int kPair>
  [[gnu::always_inline]] static U32x16 pair(U32x16 words) {
    const U32x16 mask = broadcast_u32(kBits == 4 ? 0x000f000fU : 0x00ff00ffU);
    return bit_and(kPair == 0 ? words : shift_right<kBits * kPair>(words), mask);
  }

  [[gnu::always_inline]] static Sum add(Sum sum, U32x16 pairs, U32x16 factors) {
    return dot_int16_pairs(sum, pairs, factors);
  }
};
#endif

// Calls function<Words<bits>>() for codes of 4 or 8 bits.
template <template <int> typename Words, typename Function>
[[gnu::always_inline]] inline void with_code_words(int bits, const Function& function) {
  if (bits == 4) {
    function.template operator()<Words<4>>();
  } else {
    function.template operator()<Words<8>>();
  }
}

// acc[r][v] += the products of vector v's words and row r's factors, one per pair of a word.
template <typename Words, int kRows, int kVectors>
[[gnu::always_inline]] inline void add_word_products(
    typename Words::Sum (&acc)[kRows][kVectors],
    const U32x16 (&words)[kVectors],
    const std::uint32_t* factors,
    int stride
) {
  each_index<Words::kPairs>([&]<int part>() {
    U32x16 pairs[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      pairs[v] = Words::template pair<part>(words[v]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const U32x16 factor = broadcast_u32(factors[r * stride + part]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        acc[r][v] = Words::add(acc[r][v], pairs[v], factor);
      }
    }
  });
}

}  // namespace saker::kernels::SAKER_ISA
