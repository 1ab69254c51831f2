// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rounds a row of x to int16 in multiples of a step per group, sixteen groups at a time. AVX-512.

#include "saker/kernels/cpu/gemm/steps.h"
#include "saker/kernels/cpu/simd/transpose_lanes.h"
#include "saker/kernels/layout/lanes.h"
#include "saker/kernels/layout/packed_matrix.h"

namespace saker::kernels::SAKER_ISA {

// Calls function<group>() with the weight's group, kSmallest or more.
template <int kSmallest = 32, typename Function>
void with_group(const PackedMatrix& weight, const Function& function) {
  if constexpr (kSmallest == 16) {
    if (weight.group == 16) {
      return function.template operator()<16>();
    }
  }
  switch (weight.group) {
    case 32:
      return function.template operator()<32>();
    case 64:
      return function.template operator()<64>();
    default:
      return function.template operator()<128>();
  }
}

inline constexpr int kGroupsAtOnce = kLanes;  // One lane per group.

// The lane-wise maximum of unsigned integers.
[[gnu::always_inline]] inline U32x16 larger(U32x16 a, U32x16 b) {
  return {_mm512_max_epu32(a.v, b.v)};
}

// Unsigned integers: lane i of the result is the maximum, or the sum, of all lanes of lines[i].
// Overwrites `lines`.
inline U32x16 largest_of_lines(U32x16 (&lines)[kGroupsAtOnce]) {
  transpose(lines);
  for (int i = 1; i < kGroupsAtOnce; ++i) {
    lines[0] = larger(lines[0], lines[i]);
  }
  return lines[0];
}

inline U32x16 sums_of_lines(U32x16 (&lines)[kGroupsAtOnce]) {
  transpose(lines);
  for (int i = 1; i < kGroupsAtOnce; ++i) {
    lines[0] = add_u32(lines[0], lines[i]);
  }
  return lines[0];
}

// The steps of some groups of a row; NaN where a number is not finite (see cpu/gemm/steps.h).
template <int kGroup>
Int16Steps group_steps(const float* from, int groups) {
  U32x16 tops[kGroupsAtOnce] = {};
  for (int g = 0; g < groups; ++g, from += kGroup) {
    U32x16 top = broadcast_u32(0);
#pragma GCC unroll 8
    for (int i = 0; i < kGroup; i += kLanes) {
      // Magnitudes order like their bits.
      top = larger(top, as_u32(magnitude(load(from + i))));
    }
    tops[g] = top;
  }
  const F32x16 largest = as_float(largest_of_lines(tops));
  Int16Steps steps(largest);
  steps.step = add(steps.step, flaws(largest));
  return steps;
}

// Stores each group's numbers for products: its step times the sum of its integers and, `stride`
// behind, the step. Groups are `next` apart. Overwrites `sums`.
inline void store_numbers(
    const Int16Steps& steps,
    U32x16 (&sums)[kGroupsAtOnce],
    int groups,
    int stride,
    int next,
    float* numbers
) {
  alignas(64) float values[2][kGroupsAtOnce];
  store(values[0], mul(steps.step, to_float(sums_of_lines(sums))));
  store(values[1], steps.step);
  for (int g = 0; g < groups; ++g, numbers += next) {
    numbers[0] = values[0][g];
    numbers[stride] = values[1][g];
  }
}

}  // namespace saker::kernels::SAKER_ISA
