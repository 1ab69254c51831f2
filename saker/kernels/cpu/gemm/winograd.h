// SPDX-License-Identifier: Apache-2.0
#pragma once

// Winograd's inner product ("A New Algorithm for Inner Product", IEEE Transactions on Computers
// C-17, 1968) for integer codes and inputs. Two columns take one multiplication:
//   x1 w1 + x2 w2 = (x1 + w2) (x2 + w1) - x1 x2 - w1 w2
// The sums of x1 x2 and w1 w2 over a group are computed once per row of x and of the weight.
// Integers of 32 bits may wrap around on the way, but the final sum fits them. So the bits are
// those of plain products. This is faster where additions have ports of their own.

#include "saker/kernels/cpu/gemm/code_formats.h"

namespace saker::kernels::SAKER_ISA {

// A format that uses these products.
template <typename Format>
struct WinogradFormat : Format {
  static constexpr bool kWinograd = true;
};

template <typename Format>
inline constexpr bool kIsWinograd = requires { Format::kWinograd; };

// Rows of a micro-panel: with four NR blocks their sums leave registers for both operands.
inline constexpr int kWinogradRows = 4;
// Maximum rows of a single micro-panel, with two NR blocks.
inline constexpr int kWinogradFewRows = 9;

#if defined(SAKER_WINOGRAD)
// True for the sums of a micro-panel that use plain products. One in three balances two multiply
// ports against four add ports.
constexpr bool is_plain(int row, int block, int blocks) {
  return (row * blocks + block) % 3 == 2;
}

// Minus the sum of w1 w2 over the operands of a group, `stride` apart.
[[gnu::always_inline]] inline U32x16 minus_own_products(
    const std::uint32_t* operands, int count, int stride
) {
  U32x16 sum = broadcast_u32(0);
  for (int i = 0; i < count; i += 2) {
    const U32x16 first = load_u32(operands + i * stride);
    sum = dot_int16_pairs(sum, first, load_u32(operands + (i + 1) * stride));
  }
  return sub_u32(broadcast_u32(0), sum);
}

// Sets the start values of a group's sums from `numbers` of its rows of x, without the part that
// depends on the weight.
template <int kRows, int kBlocks>
[[gnu::always_inline]] inline void start_winograd_sums(
    const float* numbers, U32x16 (&sums)[kRows][kBlocks]
) {
  unroll<kRows>([&](auto row) {
    const U32x16 start = as_u32(broadcast(numbers[row.kValue]));
    unroll<kBlocks>([&](auto b) {
      constexpr bool kPlain = is_plain(row.kValue, b.kValue, kBlocks);
      sums[row.kValue][b.kValue] = kPlain ? broadcast_u32(0) : start;
    });
  });
}

// Adds the part that depends on the weight only, its minus_own_products.
template <int kRows, int kBlocks>
[[gnu::always_inline]] inline void add_own_products(
    const U32x16 (&own)[kBlocks], U32x16 (&sums)[kRows][kBlocks]
) {
  unroll<kRows>([&](auto row) {
    unroll<kBlocks>([&](auto b) {
      if constexpr (!is_plain(row.kValue, b.kValue, kBlocks)) {
        sums[row.kValue][b.kValue] = add_u32(sums[row.kValue][b.kValue], own[b.kValue]);
      }
    });
  });
}

// Adds the products of two operands to the sums of kRows rows and kBlocks NR blocks.
template <int kRows, int kBlocks>
[[gnu::always_inline]] inline void add_winograd_step(
    const U32x16 (&first)[kBlocks],
    const U32x16 (&second)[kBlocks],
    const std::uint32_t* inputs,
    U32x16 (&sums)[kRows][kBlocks]
) {
  unroll<kRows>([&](auto row) {
    const U32x16 x1 = broadcast_u32(inputs[row.kValue]);
    const U32x16 x2 = broadcast_u32(inputs[kRows + row.kValue]);
    unroll<kBlocks>([&](auto b) {
      U32x16& sum = sums[row.kValue][b.kValue];
      if constexpr (is_plain(row.kValue, b.kValue, kBlocks)) {
        sum = dot_int16_pairs(sum, first[b.kValue], x1);
        sum = dot_int16_pairs(sum, second[b.kValue], x2);
      } else {
        sum = dot_int16_sums(sum, x1, second[b.kValue], x2, first[b.kValue]);
      }
    });
  });
}
#endif

}  // namespace saker::kernels::SAKER_ISA
