// SPDX-License-Identifier: Apache-2.0
#pragma once

// Unpacks the terms of super-blocks (packed_matrix.h) to a scale and a bias of float32 for each
// group. Products of a float16 with an integer of 8 bits are exact in float32.

#include "saker/kernels/cpu/gemm/lines.h"
#include "saker/kernels/cpu/simd/unroll.h"
#include "saker/kernels/cpu/simd/vec.h"
#include "saker/kernels/layout/packed_matrix.h"

namespace saker::kernels::SAKER_ISA {

// d * (n - kZero), where n has kBits bits from bit kAt of each word on. In the fraction of a float that
// is 2^(23 - kAt) they add n to it. So one fused multiply-add converts and multiplies; both products
// in it have 24 bits at most, so the result is exact.
template <int kAt, int kBits, int kZero = 0>
[[gnu::always_inline]] inline F32x16 times_field(F32x16 d, U32x16 words) {
  static_assert(kAt + kBits <= 23);
  constexpr unsigned kMask = ((1U << kBits) - 1U) << kAt;
  constexpr unsigned kPower = (150U - kAt) << 23;  // The bits of 2^(23 - kAt).
  constexpr auto kMinuend = static_cast<float>((1 << (23 - kAt)) + kZero);
  const U32x16 bits = bit_or(bit_and(words, broadcast_u32(kMask)), broadcast_u32(kPower));
  if constexpr (kFusedMultiplyAdd) {
    return fma(d, as_float(bits), mul(d, broadcast(-kMinuend)));
  } else {
    return mul(d, sub(as_float(bits), broadcast(kMinuend)));
  }
}

// d * (n - kZero) for number kIndex of sixteen with 6 bits in three lines.
template <int kIndex, int kZero = 0>
[[gnu::always_inline]] inline F32x16 times_six_bits(F32x16 d, const std::byte* lines) {
  if constexpr (kIndex < 15) {
    constexpr int kField = kIndex % 5;
    constexpr int kAt = kField == 2 || kField == 4 ? 12 : 6;
    return times_field<kAt, 6, kZero>(d, shifted<kAt - 6 * kField>(load_line(lines, kIndex / 5)));
  } else {
    const U32x16 first = bit_and(shift_right<24>(load_line(lines, 0)), broadcast_u32(0xc0U));
    const U32x16 second = bit_and(shift_right<22>(load_line(lines, 1)), broadcast_u32(0x300U));
    const U32x16 third = bit_and(shift_right<20>(load_line(lines, 2)), broadcast_u32(0xc00U));
    return times_field<6, 6, kZero>(d, bit_or(bit_or(first, second), third));
  }
}

inline F32x16 load_halves_line(const std::byte* at) {
  return load_f16(reinterpret_cast<const std::uint16_t*>(at));
}

// A factor times the integer scale, or minimum, of a group, in lines of one TermKind. `lines` are those
// behind the factors. Without minima, kZero is the code that means 0.
struct PairTerms {
  static constexpr int kGroups = 8;
  static constexpr int kZero = 0;

  template <int kGroup>
  [[gnu::always_inline]] static F32x16 scale(F32x16 d, const std::byte* lines) {
    return times_six_bits<kGroup>(d, lines);
  }

  template <int kGroup>
  [[gnu::always_inline]] static F32x16 minimum(F32x16 d, const std::byte* lines) {
    return times_six_bits<kGroups + kGroup>(d, lines);
  }
};

struct NibbleTerms {
  static constexpr int kGroups = 16;
  static constexpr int kZero = 0;

  // Both lie in the second byte of a word after one shift.
  template <int kGroup>
  [[gnu::always_inline]] static F32x16 scale(F32x16 d, const std::byte* lines) {
    return times_field<8, 4>(d, shifted<8 - 8 * (kGroup % 4)>(load_line(lines, kGroup / 4)));
  }

  template <int kGroup>
  [[gnu::always_inline]] static F32x16 minimum(F32x16 d, const std::byte* lines) {
    return times_field<12, 4>(d, shifted<8 - 8 * (kGroup % 4)>(load_line(lines, kGroup / 4)));
  }
};

struct SixBitTerms {
  static constexpr int kGroups = 16;
  static constexpr int kZero = 4;

  template <int kGroup>
  [[gnu::always_inline]] static F32x16 scale(F32x16 d, const std::byte* lines) {
    return times_six_bits<kGroup, 32>(d, lines);
  }
};

struct ByteTerms {
  static constexpr int kGroups = 16;
  static constexpr int kZero = 32;

  template <int kGroup>
  [[gnu::always_inline]] static F32x16 scale(F32x16 d, const std::byte* lines) {
    return times_field<8, 8, 128>(d, shifted<8 - 8 * (kGroup % 4)>(load_line(lines, kGroup / 4)));
  }
};

struct SplitTerms {
  static constexpr int kGroups = 8;
  static constexpr int kZero = 128;

  template <int kGroup>
  [[gnu::always_inline]] static F32x16 scale(F32x16 d, const std::byte* lines) {
    const U32x16 low = bit_and(shifted<6 - 4 * kGroup>(load_line(lines, 0)), broadcast_u32(0x3c0U));
    // A bf16 is the upper half of its float32.
    const auto* halves = reinterpret_cast<const std::uint16_t*>(lines + kLaneBytes);
    const U32x16 two = shift_right<6 + 2 * kGroup>(as_u32(load_bf16(halves)));
    return times_field<6, 6, 32>(d, bit_or(low, bit_and(two, broadcast_u32(0xc00U))));
  }
};

template <typename Terms>
inline constexpr bool kHasMinima = Terms::kZero == 0;

// A group's scale, and its bias.
struct SuperTerm {
  F32x16 scale;
  F32x16 bias;
};

// The terms of one super-block, from their first byte on.
template <typename Terms>
class SuperTerms {
 public:
  [[gnu::always_inline]] explicit SuperTerms(const std::byte* terms)
      : d_(load_halves_line(terms)), minus_(zero()), lines_(terms + 32) {
    if constexpr (kHasMinima<Terms>) {
      minus_ = mul(load_halves_line(terms + 32), broadcast(-1.0F));
      lines_ = terms + 64;
    }
  }

  template <int kGroup>
  [[gnu::always_inline]] SuperTerm of_group() const {
    const F32x16 scale = Terms::template scale<kGroup>(d_, lines_);
    if constexpr (kHasMinima<Terms>) {
      return {scale, Terms::template minimum<kGroup>(minus_, lines_)};
    } else {
      return {scale, mul(scale, broadcast(-static_cast<float>(Terms::kZero)))};
    }
  }

 private:
  F32x16 d_;
  F32x16 minus_;  // Minus dmin.
  const std::byte* lines_;
};

// Calls function with the terms of a weight in super-blocks.
template <typename Function>
[[gnu::always_inline]] inline void with_super_terms(TermKind kind, const Function& function) {
  switch (kind) {
    case TermKind::kPairs:
      return function(PairTerms());
    case TermKind::kNibbles:
      return function(NibbleTerms());
    case TermKind::kSixBits:
      return function(SixBitTerms());
    case TermKind::kSplit:
      return function(SplitTerms());
    default:
      return function(ByteTerms());
  }
}

// Stores the scales, then the biases, of groups [first, first + count) of a super-block at `to`; groups
// are `stride` apart.
inline void unpack_super_terms(
    const PackedMatrix& weight,
    const std::byte* super,
    int first,
    int count,
    std::byte* to,
    std::size_t stride
) {
  const std::byte* from = super + weight.super_bytes() - weight.super_term_bytes();
  with_super_terms(weight.terms, [&](auto kind) {
    using Terms = decltype(kind);
    const SuperTerms<Terms> terms(from);
    unroll<Terms::kGroups>([&](auto group) {
      constexpr int kGroup = group.kValue;
      if (kGroup >= first && kGroup < first + count) {
        const SuperTerm term = terms.template of_group<kGroup>();
        std::byte* const at = to + static_cast<std::size_t>(kGroup - first) * stride;
        store(reinterpret_cast<float*>(at), term.scale);
        store(reinterpret_cast<float*>(at + kLaneBytes), term.bias);
      }
    });
  });
}

}  // namespace saker::kernels::SAKER_ISA
