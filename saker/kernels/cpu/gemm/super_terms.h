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

// Byte kIndex of sixteen in four lines, less 128.
template <int kIndex>
[[gnu::always_inline]] inline F32x16 scale_byte(const std::byte* lines) {
  const U32x16 line = load_line(lines, kIndex / 4);
  const U32x16 byte = bit_and(shift_right<8 * (kIndex % 4)>(line), broadcast_u32(0xffU));
  return sub(to_float(byte), broadcast(128.0F));
}

inline F32x16 load_halves_line(const std::byte* at) {
  return load_f16(reinterpret_cast<const std::uint16_t*>(at));
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
  const F32x16 d = load_halves_line(terms);
  if (weight.terms == TermKind::kPairs) {
    constexpr int kGroups = 8;
    const F32x16 minus = mul(load_halves_line(terms + 32), broadcast(-1.0F));
    unroll<kGroups>([&](auto group) {
      constexpr int kGroup = group.kValue;
      if (kGroup >= first && kGroup < first + count) {
        const std::byte* lines = terms + 64;
        const F32x16 bias = mul(minus, six_bits<kGroups + kGroup>(lines));
        function(kGroup, mul(d, six_bits<kGroup>(lines)), bias);
      }
    });
  } else {
    const F32x16 zero_code = broadcast(-static_cast<float>(weight.zero));
    unroll<16>([&](auto group) {
      constexpr int kGroup = group.kValue;
      if (kGroup >= first && kGroup < first + count) {
        const F32x16 scale = mul(d, scale_byte<kGroup>(terms + 32));
        function(kGroup, scale, mul(scale, zero_code));
      }
    });
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
