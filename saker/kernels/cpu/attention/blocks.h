// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared parts of attention's inner products over one block of 64 keys, for up to six query rows at
// once.
//
// The chain of additions of each row and key is the same for every number of rows; only the
// registers are shared.

#include "saker/kernels/cpu/simd/unroll.h"
#include "saker/kernels/cpu/simd/vec.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels::SAKER_ISA {

inline constexpr int kBlock = 64;
inline constexpr int kVector = 16;
// Maximum rows whose sums and operands stay in registers.
inline constexpr int kMaxRows = kWideRegisters ? 6 : 5;

// Prefetch distance in bytes: 100 ns of latency at 20 GB/s.
inline constexpr int kPrefetchBytes = 2048;

// Prefetches into L2: L1 tracks only a few outstanding misses.
inline void prefetch(const std::byte* p) {
  __builtin_prefetch(p, 0, 2);
}

// Calls function<rows>() for 1 to `most` rows.
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

// acc[r][v] += q[r] * keys[v]. For a single row, keys are widened one vector at a time.
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
