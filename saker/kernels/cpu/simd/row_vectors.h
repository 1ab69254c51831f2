// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of any width as vectors; the last one may be partial.

#include "saker/kernels/cpu/simd/vec.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kWidth = 16;

// Calls function(first, lanes) for each vector of [0, width); the last may have fewer than 16
// lanes.
template <typename Function>
inline void each_vector(int width, Function function) {
  int i = 0;
  for (; i + kWidth <= width; i += kWidth) {
    function(i, kWidth);
  }
  if (i < width) {
    function(i, width - i);
  }
}

inline F32x16 load_lanes(const float* p, int lanes) {
  return lanes == kWidth ? load(p) : load_part(p, lanes);
}

inline void store_lanes(float* p, F32x16 v, int lanes) {
  if (lanes == kWidth) {
    store(p, v);
  } else {
    store_part(p, v, lanes);
  }
}

// The sum of squares, in four accumulators of 16 lanes: vector i goes into number i modulo 4.
inline float square_sum(const float* x, int width) {
  F32x16 sums[4] = {zero(), zero(), zero(), zero()};
  int i = 0;
  for (; i + 4 * kWidth <= width; i += 4 * kWidth) {
    for (int v = 0; v < 4; ++v) {
      const F32x16 a = load(x + i + v * kWidth);
      sums[v] = fma(a, a, sums[v]);
    }
  }
  for (int v = 0; i < width; i += kWidth, ++v) {
    const int lanes = width - i < kWidth ? width - i : kWidth;
    const F32x16 a = load_lanes(x + i, lanes);
    sums[v] = fma(a, a, sums[v]);
  }
  return reduce_add(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}

}  // namespace saker::kernels::SAKER_ISA
