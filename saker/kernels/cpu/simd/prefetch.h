// SPDX-License-Identifier: Apache-2.0
#pragma once

// Software prefetch, where the processor does not predict what is read next.

#include "saker/kernels/cpu/simd/vec.h"

#include <cstddef>

namespace saker::kernels::SAKER_ISA {

constexpr std::size_t kLineBytes = 64;

// Prefetches memory that is read soon, into L2: L1 tracks only a few outstanding misses.
[[gnu::always_inline]] inline void prefetch_l2(const std::byte* at, std::size_t bytes) {
  for (std::size_t line = 0; line < bytes; line += kLineBytes) {
    __builtin_prefetch(at + line, 0, 2);
  }
}

// Memory latency times bandwidth, with a margin.
constexpr std::size_t kPrefetchDistance = 8192;
// Weights are prefetched this far ahead into L2, which tracks many outstanding misses. If
// kL1PrefetchDistance is not 0, they are prefetched again into L1, that many bytes before use. Zen
// 4 and Zen 5 (bf16 without tiles) read fastest with a prefetch straight into L1.
#if defined(__AMX_TILE__) || (defined(__AVX512F__) && !defined(__AVX512BF16__))
constexpr bool kPrefetchIntoL1 = false;
constexpr std::size_t kL1PrefetchDistance = 2048;
#else
constexpr bool kPrefetchIntoL1 = kBf16Dot;
constexpr std::size_t kL1PrefetchDistance = 0;
#endif

// Prefetches the weights behind those in flight, as many bytes as are read meanwhile. The blocks
// and groups in flight are more streams, and shorter ones, than a hardware prefetcher follows.
struct Prefetcher {
  const std::byte* at;
  std::size_t step = kLineBytes;  // Memory per line read: less for narrow weights.

  [[gnu::always_inline]] void ask(std::size_t bytes) {
    for (std::size_t line = 0; line < bytes; line += kLineBytes) {
      __builtin_prefetch(at, 0, kPrefetchIntoL1 ? 3 : 2);
      if constexpr (kL1PrefetchDistance > 0) {
        __builtin_prefetch(at - (kPrefetchDistance - kL1PrefetchDistance), 0, 3);
      }
      at += step;
    }
  }
};

}  // namespace saker::kernels::SAKER_ISA
