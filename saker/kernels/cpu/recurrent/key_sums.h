// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums over the keys of a state's matrix, in an order of their own.

#include "saker/kernels/cpu/simd/row_vectors.h"
#include "saker/kernels/cpu/simd/unroll.h"

namespace saker::kernels::SAKER_ISA {

// Calls function(key, half) for each key, with its last bit as a constant, because it names
// registers.
template <typename Function>
[[gnu::always_inline]] inline void each_key(int count, const Function& function) {
  int key = 0;
  for (; key + 1 < count; key += 2) {
    function(key, Index<0>());
    function(key + 1, Index<1>());
  }
  if (key < count) {
    function(key, Index<0>());
  }
}

// Sums over the keys: even and odd ones separately, so that additions need not wait for each other.
template <int kVectors>
struct KeySums {
  F32x16 sums[2][kVectors];

  KeySums() {
    for (auto& half : sums) {
      for (F32x16& sum : half) {
        sum = zero();
      }
    }
  }

  [[gnu::always_inline]] void add_product(int half, int vector, F32x16 a, F32x16 b) {
    F32x16& sum = sums[half][vector];
    sum = fma(a, b, sum);
  }

  [[gnu::always_inline]] F32x16 total(int vector) const {
    return add(sums[0][vector], sums[1][vector]);
  }
};

}  // namespace saker::kernels::SAKER_ISA
