// SPDX-License-Identifier: Apache-2.0
#pragma once

// Operands of one multiply-add of a product: a float32 weight, or a pair of bf16 or of integers
// where the instruction set multiplies these. A Sum is a chain of multiply-adds.

#include "saker/kernels/cpu/simd/unroll.h"
#include "saker/kernels/cpu/simd/vec.h"
#include "saker/kernels/layout/packed_matrix.h"

namespace saker::kernels::SAKER_ISA {

// Multiplies float32.
struct FloatOperand {
  using Weight = F32x16;
  using Input = float;
  using Sum = F32x16;
  static constexpr int kPerOperand = 1;  // Columns k per operand.
  static constexpr bool kSteps = false;  // True if inputs are multiples of a group's step.
  static constexpr int kSums = 1;        // Vectors of a Sum.

  // x rounded to an operand.
  static F32x16 round(F32x16 x) { return x; }

  static F32x16 step(F32x16 acc, Weight w, Input x) { return fma(w, broadcast(x), acc); }

  static Weight load_panel(const float* p) { return load(p); }

  static void store_panel(float* p, Weight w) { store(p, w); }
};

// Base of operands with two columns in one word.
struct WordOperand {
  using Weight = U32x16;
  using Input = std::uint32_t;
  static constexpr int kPerOperand = 2;
  static constexpr int kSums = 1;

  static Weight load_panel(const std::uint32_t* p) { return load_u32(p); }

  static void store_panel(std::uint32_t* p, Weight w) { store_u32(p, w); }
};

#if defined(SAKER_BF16_DOT)
// Multiplies pairs of bf16.
struct PairOperand : WordOperand {
  using Sum = F32x16;
  static constexpr bool kSteps = false;

  static F32x16 round(F32x16 x) { return round_to_bf16(x); }

  static F32x16 step(F32x16 acc, Weight w, Input x) {
    return dot_bf16_pairs(acc, w, broadcast_u32(x));
  }
};

using Bf16Operand = PairOperand;
#else
using Bf16Operand = FloatOperand;
#endif

#if defined(SAKER_INT16_DOT)
// Multiplies pairs of int16: codes, and x in multiples of a group's step. Sums of a group, which
// has at most 128 columns, fit 32 bits.
struct IntegerOperand : WordOperand {
  using Sum = U32x16;
  static constexpr bool kSteps = true;

  static U32x16 step(U32x16 acc, Weight w, Input x) {
    return dot_int16_pairs(acc, w, broadcast_u32(x));
  }

  static U32x16 whole(Sum sum) { return sum; }
};

using CodeOperand = IntegerOperand;
#else
using CodeOperand = Bf16Operand;
#endif

#if defined(SAKER_BYTE_DOT)
// Multiplies four codes as bytes per operand by the two signed bytes of such integers. Unpacking a
// word to bytes is less work than to pairs, which matters where a word meets few rows.
struct ByteOperand {
  using Weight = U32x16;

  struct Input {
    std::uint32_t upper;
    std::uint32_t lower;
  };

  struct Sum {
    U32x16 upper;
    U32x16 lower;
  };

  static constexpr int kPerOperand = 4;
  static constexpr int kSums = 2;
  static constexpr bool kSteps = true;

  static Sum step(const Sum& acc, Weight w, const Input& x) {
    return {
        dot_bytes(acc.upper, w, broadcast_u32(x.upper)),
        dot_bytes(acc.lower, w, broadcast_u32(x.lower)),
    };
  }

  static U32x16 whole(const Sum& sum) { return add_u32(shift_left<8>(sum.upper), sum.lower); }
};

[[gnu::always_inline]] inline void clear(ByteOperand::Sum& sum) {
  sum = {broadcast_u32(0), broadcast_u32(0)};
}
#endif

[[gnu::always_inline]] inline void clear(F32x16& sum) {
  sum = zero();
}

[[gnu::always_inline]] inline void clear(U32x16& sum) {
  sum = broadcast_u32(0);
}

template <typename Sum, int kRows, int kBlocks>
[[gnu::always_inline]] inline void clear(Sum (&sums)[kRows][kBlocks]) {
  unroll<kRows>([&](auto r) { unroll<kBlocks>([&](auto b) { clear(sums[r.kValue][b.kValue]); }); });
}

}  // namespace saker::kernels::SAKER_ISA
