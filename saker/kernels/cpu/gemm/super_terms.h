// SPDX-License-Identifier: Apache-2.0
#pragma once

// Unpacks the terms of super-blocks (packed_matrix.h) to a scale and a bias of float32 for each
// group. Products of a float16 with an integer of 8 bits are exact in float32.

#include "saker/kernels/cpu/gemm/lines.h"
#include "saker/kernels/cpu/simd/unroll.h"
#include "saker/kernels/cpu/simd/vec.h"
#include "saker/kernels/layout/packed_matrix.h"

namespace saker::kernels::SAKER_ISA {

// Number kIndex of sixteen with 6 bits in three lines.
template <int kIndex>
[[gnu::always_inline]] inline F32x16 six_bits(const std::byte* lines) {
  if constexpr (kIndex < 15) {
    const U32x16 line = load_line(lines, kIndex / 5);
    return to_float(bit_and(shift_right<6 * (kIndex % 5)>(line), broadcast_u32(63)));
  } else {
    const U32x16 top = broadcast_u32(0xc0000000U);
    const U32x16 first = shift_right<30>(load_line(lines, 0));
    const U32x16 second = shift_right<28>(bit_and(load_line(lines, 1), top));
    const U32x16 third = shift_right<26>(bit_and(load_line(lines, 2), top));
    return to_float(bit_or(bit_or(first, second), third));
  }
}

// kBits bits of byte kIndex in lines, from kFirst on.
template <int kIndex, int kFirst, int kBits>
[[gnu::always_inline]] inline F32x16 bits_of_byte(const std::byte* lines) {
  const U32x16 line = load_line(lines, kIndex / 4);
  constexpr unsigned kMask = (1U << kBits) - 1U;
  return to_float(bit_and(shift_right<8 * (kIndex % 4) + kFirst>(line), broadcast_u32(kMask)));
}

inline F32x16 load_halves_line(const std::byte* at) {
  return load_f16(reinterpret_cast<const std::uint16_t*>(at));
}

// The scale and the minimum of a group, as integers, in lines of one TermKind. `lines` are those behind
// the factors.
struct PairTerms {
  static constexpr int kGroups = 8;

  template <int kGroup>
  [[gnu::always_inline]] static F32x16 scale(const std::byte* lines) {
    return six_bits<kGroup>(lines);
  }

  template <int kGroup>
  [[gnu::always_inline]] static F32x16 minimum(const std::byte* lines) {
    return six_bits<kGroups + kGroup>(lines);
  }
};

struct NibbleTerms {
  static constexpr int kGroups = 16;

  template <int kGroup>
  [[gnu::always_inline]] static F32x16 scale(const std::byte* lines) {
    return bits_of_byte<kGroup, 0, 4>(lines);
  }

  template <int kGroup>
  [[gnu::always_inline]] static F32x16 minimum(const std::byte* lines) {
    return bits_of_byte<kGroup, 4, 4>(lines);
  }
};

// Without minima.
struct SixBitTerms {
  static constexpr int kGroups = 16;

  template <int kGroup>
  [[gnu::always_inline]] static F32x16 scale(const std::byte* lines) {
    return sub(six_bits<kGroup>(lines), broadcast(32.0F));
  }
};

struct ByteTerms {
  static constexpr int kGroups = 16;

  template <int kGroup>
  [[gnu::always_inline]] static F32x16 scale(const std::byte* lines) {
    return sub(bits_of_byte<kGroup, 0, 8>(lines), broadcast(128.0F));
  }
};

struct SplitTerms {
  static constexpr int kGroups = 8;

  template <int kGroup>
  [[gnu::always_inline]] static F32x16 scale(const std::byte* lines) {
    const U32x16 low = bit_and(shift_right<4 * kGroup>(load_line(lines, 0)), broadcast_u32(15));
    // A bf16 is the upper half of its float32.
    const auto* halves = reinterpret_cast<const std::uint16_t*>(lines + kLaneBytes);
    const U32x16 two = shift_right<16 + 2 * kGroup>(as_u32(load_bf16(halves)));
    const U32x16 high = shift_left<4>(bit_and(two, broadcast_u32(3)));
    return sub(to_float(bit_or(low, high)), broadcast(32.0F));
  }
};

// See each_super_group.
template <typename Terms, typename Function>
[[gnu::always_inline]] inline void each_group_with_minimum(
    Terms, const std::byte* terms, int first, int count, const Function& function
) {
  const F32x16 d = load_halves_line(terms);
  const F32x16 minus = mul(load_halves_line(terms + 32), broadcast(-1.0F));
  unroll<Terms::kGroups>([&](auto group) {
    constexpr int kGroup = group.kValue;
    if (kGroup >= first && kGroup < first + count) {
      const std::byte* lines = terms + 64;
      const F32x16 bias = mul(minus, Terms::template minimum<kGroup>(lines));
      function(kGroup, mul(d, Terms::template scale<kGroup>(lines)), bias);
    }
  });
}

template <typename Terms, typename Function>
[[gnu::always_inline]] inline void each_group_with_zero(
    Terms, int zero, const std::byte* terms, int first, int count, const Function& function
) {
  const F32x16 d = load_halves_line(terms);
  const F32x16 zero_code = broadcast(-static_cast<float>(zero));
  unroll<Terms::kGroups>([&](auto group) {
    constexpr int kGroup = group.kValue;
    if (kGroup >= first && kGroup < first + count) {
      const F32x16 scale = mul(d, Terms::template scale<kGroup>(terms + 32));
      function(kGroup, scale, mul(scale, zero_code));
    }
  });
}

// Calls function(group, scale, bias) for the groups [first, first + count) of a super-block.
template <typename Function>
[[gnu::always_inline]] inline void each_super_group(
    const PackedMatrix& weight,
    const std::byte* super,
    int first,
    int count,
    const Function& function
) {
  const std::byte* terms = super + weight.super_bytes() - weight.super_term_bytes();
  switch (weight.terms) {
    case TermKind::kPairs:
      return each_group_with_minimum(PairTerms(), terms, first, count, function);
    case TermKind::kNibbles:
      return each_group_with_minimum(NibbleTerms(), terms, first, count, function);
    case TermKind::kSixBits:
      return each_group_with_zero(SixBitTerms(), weight.zero, terms, first, count, function);
    case TermKind::kSplit:
      return each_group_with_zero(SplitTerms(), weight.zero, terms, first, count, function);
    default:
      return each_group_with_zero(ByteTerms(), weight.zero, terms, first, count, function);
  }
}

// Stores each group's scales, then its biases, at `to`; groups are `stride` apart.
inline void unpack_super_terms(
    const PackedMatrix& weight,
    const std::byte* super,
    int first,
    int count,
    std::byte* to,
    std::size_t stride
) {
  each_super_group(weight, super, first, count, [&](int group, F32x16 scale, F32x16 bias) {
    std::byte* const at = to + static_cast<std::size_t>(group - first) * stride;
    store(reinterpret_cast<float*>(at), scale);
    store(reinterpret_cast<float*>(at + kLaneBytes), bias);
  });
}

}  // namespace saker::kernels::SAKER_ISA
