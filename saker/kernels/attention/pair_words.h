// SPDX-License-Identifier: Apache-2.0
#pragma once

// Words of a page as pairs of bf16: the elements themselves, or codes of a quantized page, which
// code_block.h lays out. Small integers are bf16 numbers, so nothing is rounded.

#include "saker/kernels/cpu/vec.h"

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

// What is added to codes of `bits` bits where they are unpacked, and the middle of what that gives.
constexpr float code_offset(int bits) {
  return bits == 4 ? 16.0F : 0.0F;
}

constexpr float code_middle(int bits) {
  return code_offset(bits) + static_cast<float>((1 << bits) - 1) / 2;
}

// Words that hold one pair each.
struct PlainWords {
  static constexpr int kPairs = 1;

  template <int kPair>
  [[gnu::always_inline]] static U32x16 pair(U32x16 words) {
    return words;
  }
};

// Words of codes. Those of 4 bits become the first bits behind the leading one of 16 + code: two
// instructions for 32 codes.
template <int kBits>
struct CodeWords {
  static constexpr int kPairs = 16 / kBits;

  template <int kPair>
  [[gnu::always_inline]] static U32x16 pair(U32x16 words) {
    if constexpr (kBits == 4) {
      constexpr int kFirst = 3;  // Of the four bits among the seven of a bf16.
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

#if defined(SAKER_BF16_DOT)
// Adds the products of some pairs and of one row's factor to the row's sums.
template <int kVectors>
[[gnu::always_inline]] inline void add_pairs(
    F32x16 (&sums)[kVectors], const U32x16 (&pairs)[kVectors], std::uint32_t factor
) {
  const U32x16 wide = broadcast_u32(factor);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    sums[v] = dot_bf16_pairs(sums[v], pairs[v], wide);
  }
}
#endif

// Calls function<Words>() for codes of 4 or 8 bits.
template <typename Function>
[[gnu::always_inline]] inline void with_code_words(int bits, const Function& function) {
  if (bits == 4) {
    function.template operator()<CodeWords<4>>();
  } else {
    function.template operator()<CodeWords<8>>();
  }
}

}  // namespace saker::kernels::SAKER_ISA
