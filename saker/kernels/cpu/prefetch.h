// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asking for memory before it is read, where a processor does not guess what comes next.

#include "saker/kernels/cpu/vec.h"

#include <cstddef>

namespace saker::kernels::SAKER_ISA {

constexpr std::size_t kLineBytes = 64;

// Asks for memory that will be read soon: into the second cache, since the first one can wait for a
// few lines only.
[[gnu::always_inline]] inline void prefetch_l2(const std::byte* at, std::size_t bytes) {
  for (std::size_t line = 0; line < bytes; line += kLineBytes) {
    __builtin_prefetch(at + line, 0, 2);
  }
}

constexpr std::size_t kPrefetchDistance =
    8192;  // Memory's latency at its speed, with room to spare.
// Weights are asked for that far ahead into the second cache, which can wait for many lines; where
// kL1PrefetchDistance is not 0, once more that short before they are read into the first. Zen 4 and Zen 5
// (bf16 without tiles) read fastest when they are asked into the first cache at once.
#if defined(__AMX_TILE__) || (defined(__AVX512F__) && !defined(__AVX512BF16__))
constexpr bool kPrefetchIntoL1 = false;
constexpr std::size_t kL1PrefetchDistance = 2048;
#else
constexpr bool kPrefetchIntoL1 = kBf16Dot;
constexpr std::size_t kL1PrefetchDistance = 0;
#endif

// Asks for the weights after those in flight, as many bytes as are read meanwhile: blocks and
// groups in flight are more streams than a processor follows by itself, and each of them is short.
struct Prefetcher {
  const std::byte* at;
  std::size_t step = kLineBytes;  // In memory for each line that is read: less of narrow weights.

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
