// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the inner products of attention over one block of 64 keys share, for up to six query rows at
// once.
//
// Each row's and each key's chain of additions is the same for every number of rows; only the
// registers are shared.

#include "saker/kernels/cpu/unroll.h"
#include "saker/kernels/cpu/vec.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels::SAKER_ISA {

inline constexpr int kBlock = 64;
inline constexpr int kVector = 16;
// The most rows whose sums, with what they are multiplied by, stay in registers.
inline constexpr int kMaxRows = kWideRegisters ? 6 : 5;

// How far ahead of the loads memory is asked for, in bytes: what 100 ns of latency need at 20 GB/s.
inline constexpr int kPrefetchBytes = 2048;

// Into the second cache: the first one can wait for a few lines only.
inline void prefetch(const std::byte* p) {
  __builtin_prefetch(p, 0, 2);
}

// Calls function<rows>() for 1 to most rows.
template <int most, typename Function>
[[gnu::always_inline]] inline void with_rows(int rows, const Function& function) {
  if constexpr (most > 1) {
    if (rows != most) {
      with_rows<most - 1>(rows, function);
      return;
    }
  }
  function.template operator()<most>();
}

// acc[r][v] += q[r] * keys[v]. Where registers are few, keys are widened one vector at a time.
template <int kRows, int kVectors, typename Keys>
[[gnu::always_inline]] inline void add_products(
    F32x16 (&acc)[kRows][kVectors], const float* q, int stride, Keys keys
) {
  if constexpr (kRows == 1) {
    const F32x16 factor = broadcast(*q);
    unroll<kVectors>([&](auto v) {
      acc[0][v.kValue] = fma(factor, keys(v.kValue), acc[0][v.kValue]);
    });
  } else {
    F32x16 loaded[kVectors];
    unroll<kVectors>([&](auto v) { loaded[v.kValue] = keys(v.kValue); });
    unroll<kRows>([&](auto r) {
      const F32x16 factor = broadcast(q[r.kValue * stride]);
      unroll<kVectors>([&](auto v) {
        acc[r.kValue][v.kValue] = fma(factor, loaded[v.kValue], acc[r.kValue][v.kValue]);
      });
    });
  }
}

}  // namespace saker::kernels::SAKER_ISA
