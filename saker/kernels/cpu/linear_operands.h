// SPDX-License-Identifier: Apache-2.0
#pragma once

// What one multiply-add of a product takes: a float32 weight, or a pair of bf16 where the
// instruction set multiplies them.

#include "saker/kernels/cpu/packed_matrix.h"
#include "saker/kernels/cpu/unroll.h"
#include "saker/kernels/cpu/vec.h"

namespace saker::kernels::SAKER_ISA {

// Multiplies float32.
struct FloatOperand {
  using Weight = F32x16;
  using Input = float;
  static constexpr int kPerOperand = 1;  // k that one operand stands for.

  static F32x16 step(F32x16 acc, Weight w, Input x) { return fma(w, broadcast(x), acc); }

  static Weight load_panel(const float* p) { return load(p); }

  static void store_panel(float* p, Weight w) { store(p, w); }
};

#if defined(SAKER_BF16_DOT)
// Multiplies pairs of bf16.
struct PairOperand {
  using Weight = U32x16;
  using Input = std::uint32_t;
  static constexpr int kPerOperand = 2;

  static F32x16 step(F32x16 acc, Weight w, Input x) {
    return dot_bf16_pairs(acc, w, broadcast_u32(x));
  }

  static Weight load_panel(const std::uint32_t* p) { return load_u32(p); }

  static void store_panel(std::uint32_t* p, Weight w) { store_u32(p, w); }
};

using Bf16Operand = PairOperand;
#else
using Bf16Operand = FloatOperand;
#endif

#if defined(SAKER_IN_PLACE)
// Weights of bf16 that stay where the checkpoint has them: sixteen rows of K values are a block,
// and 32 columns of them become the words that a packed block holds. K is a multiple of 32.
inline constexpr bool kInPlace = true;
inline constexpr int kSquarePairs = kStepColumns / 2;  // As many as a block has rows.

// Interleaving line i with line i + 8, four times over, transposes.
[[gnu::always_inline]] inline void transpose_pairs(U32x16 (&lines)[kSquarePairs]) {
  alignas(64) static constexpr std::uint32_t kLow[] = {
      0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
  };
  const U32x16 low = load_u32(kLow);
  const U32x16 high = add_u32(low, broadcast_u32(kSquarePairs / 2));
  unroll<4>([&](auto) {
    U32x16 mixed[kSquarePairs];
    unroll<kSquarePairs / 2>([&](auto i) {
      const U32x16 a = lines[i.kValue];
      const U32x16 b = lines[i.kValue + kSquarePairs / 2];
      mixed[2 * i.kValue] = permute_two(a, low, b);
      mixed[2 * i.kValue + 1] = permute_two(a, high, b);
    });
    unroll<kSquarePairs>([&](auto i) { lines[i.kValue] = mixed[i.kValue]; });
  });
}

// The words of columns [k, k + 32) of a block.
[[gnu::always_inline]] inline void load_square(
    const PackedMatrix& weight, int block, int k, U32x16 (&words)[kSquarePairs]
) {
  const std::byte* row = weight.block(block) + std::size_t{2} * k;
  unroll<kSquarePairs>([&](auto i) {
    words[i.kValue] = load_u32(reinterpret_cast<const std::uint32_t*>(row));
    __builtin_prefetch(row + std::ptrdiff_t{128});  // Into the first cache; another asks memory.
    row += std::size_t{2} * weight.columns;
  });
  transpose_pairs(words);
}
#else
inline constexpr bool kInPlace = false;
#endif

}  // namespace saker::kernels::SAKER_ISA
