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

// A sum over a row in four accumulators of 16 lanes: vector i goes into number i modulo 4.
// `accumulate(sum, offset, lanes)` adds the vector at `offset`; lanes beyond a partial vector must
// add 0.
template <typename Accumulate>
inline float row_sum(int width, Accumulate accumulate) {
  F32x16 sums[4] = {zero(), zero(), zero(), zero()};
  int i = 0;
  for (; i + 4 * kWidth <= width; i += 4 * kWidth) {
    for (int v = 0; v < 4; ++v) {
      sums[v] = accumulate(sums[v], i + v * kWidth, kWidth);
    }
  }
  for (int v = 0; i < width; i += kWidth, ++v) {
    sums[v] = accumulate(sums[v], i, width - i < kWidth ? width - i : kWidth);
  }
  return reduce_add(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}

inline float square_sum(const float* x, int width) {
  return row_sum(width, [x](F32x16 sum, int i, int lanes) {
    const F32x16 a = load_lanes(x + i, lanes);
    return fma(a, a, sum);
  });
}

}  // namespace saker::kernels::SAKER_ISA
