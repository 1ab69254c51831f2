// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layer norm of one row: mean and variance are sums in four accumulators of 16 lanes, vector i in
// number i modulo 4. The variance is that of the differences from the mean.

#include "saker/kernels/cpu/dispatch/row_bodies.h"
#include "saker/kernels/cpu/simd/row_vectors.h"
#include "saker/kernels/cpu/simd/vec.h"

namespace saker::kernels::SAKER_ISA {

// The sum of value(i, lanes) over the vectors of [0, width). Lanes beyond the width are 0.
template <typename Value>
inline float sum_of_vectors(int width, Value value) {
  F32x16 sums[4] = {zero(), zero(), zero(), zero()};
  int i = 0;
  for (; i + 4 * kWidth <= width; i += 4 * kWidth) {
    for (int v = 0; v < 4; ++v) {
      sums[v] = add(sums[v], value(i + v * kWidth, kWidth));
    }
  }
  for (int v = 0; i < width; i += kWidth, ++v) {
    const int lanes = width - i < kWidth ? width - i : kWidth;
    sums[v] = add(sums[v], value(i, lanes));
  }
  return reduce_add(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}

inline void layer_norm(const LayerNormRow& row, int width, float eps) {
  const float* x = row.x;
  if (row.residual != nullptr) {
    each_vector(width, [&](int i, int lanes) {
      const F32x16 sum = add(load_lanes(row.x + i, lanes), load_lanes(row.residual + i, lanes));
      store_lanes(row.sum + i, sum, lanes);
    });
    x = row.sum;
  }
  const auto size = static_cast<float>(width);
  const float total =
      sum_of_vectors(width, [&](int i, int lanes) { return load_lanes(x + i, lanes); });
  const F32x16 mean = broadcast(total / size);
  each_vector(width, [&](int i, int lanes) {
    store_lanes(row.normed + i, sub(load_lanes(x + i, lanes), mean), lanes);
  });
  const float variance = square_sum(row.normed, width) / size;
  const F32x16 factor = div(broadcast(1.0F), square_root(broadcast(variance + eps)));
  each_vector(width, [&](int i, int lanes) {
    const F32x16 scaled = mul(load_lanes(row.normed + i, lanes), factor);
    const F32x16 weight = load_lanes(row.weight + i, lanes);
    const F32x16 bias = load_lanes(row.bias + i, lanes);
    store_lanes(row.normed + i, add(mul(scaled, weight), bias), lanes);
  });
}

}  // namespace saker::kernels::SAKER_ISA
