// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lines of packed weights: sixteen words, one of each row of an NR block.

#include "saker/kernels/cpu/simd/vec.h"
#include "saker/kernels/layout/packed_matrix.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kLaneBytes = 64;  // Bytes of a line.

inline U32x16 load_line(const std::byte* at, int line) {
  return load_u32(reinterpret_cast<const std::uint32_t*>(at) + line * kBlockRows);
}

inline void store_line(std::byte* at, int line, U32x16 words) {
  store_u32(reinterpret_cast<std::uint32_t*>(at) + line * kBlockRows, words);
}

// Words shifted to the left, or to the right by minus that.
template <int left>
[[gnu::always_inline]] inline U32x16 shifted(U32x16 words) {
  if constexpr (left > 0) {
    return shift_left<left>(words);
  } else if constexpr (left < 0) {
    return shift_right<-left>(words);
  } else {
    return words;
  }
}

// Words of the same columns of consecutive NR blocks.
struct BlockWords {
  const std::byte* at;
  std::size_t stride;  // From a block to the next.
};

}  // namespace saker::kernels::SAKER_ISA
