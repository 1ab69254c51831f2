// SPDX-License-Identifier: Apache-2.0
#pragma once

// Interleaves the inputs of a micro-panel's rows. AVX-512.

#include "saker/kernels/cpu/gemm/group_steps.h"
#include "saker/kernels/cpu/gemm/winograd.h"

namespace saker::kernels::SAKER_ISA {

// Maximum inputs of a row's kGroupsAtOnce groups.
inline constexpr int kMaxInputs = kGroupsAtOnce * kLargestGroup / 2;

// Twice eight words.
[[gnu::always_inline]] inline U32x16 load_halves(const std::uint32_t* a, const std::uint32_t* b) {
  const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a));
  const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
  return {_mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1)};
}

// Interleaves the first `count` inputs of each of `rows` rows.
template <typename Input>
void interleave(const Input (*from)[kMaxInputs], int rows, int count, Input* to) {
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < count; ++i) {
      to[i * rows + row] = from[row][i];
    }
  }
}

// As above for four rows, which most micro-panels of Winograd's products have; eight words of each
// at a time.
inline void interleave_four(const std::uint32_t (*from)[kMaxInputs], int count, std::uint32_t* to) {
  alignas(64) static constexpr std::uint32_t kFirstFour[kLanes] = {
      0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27
  };
  constexpr int kWords = kLanes / 2;
  const U32x16 first = load_u32(kFirstFour);
  const U32x16 second = add_u32(first, broadcast_u32(4));
  for (int i = 0; i < count; i += kWords) {
    const U32x16 upper = load_halves(from[0] + i, from[1] + i);
    const U32x16 lower = load_halves(from[2] + i, from[3] + i);
    store_u32(to + 4 * i, permute_two(upper, first, lower));
    store_u32(to + 4 * i + kLanes, permute_two(upper, second, lower));
  }
}

inline void interleave(
    const std::uint32_t (*from)[kMaxInputs], int rows, int count, std::uint32_t* to
) {
  if (rows == kWinogradRows) {
    interleave_four(from, count, to);
  } else {
    interleave<std::uint32_t>(from, rows, count, to);
  }
}

}  // namespace saker::kernels::SAKER_ISA
