// SPDX-License-Identifier: Apache-2.0
#pragma once

// Widens codes in planes (packed_matrix.h): the words of some groups are written to L1 just before
// they are read.

#include "saker/kernels/cpu/simd/unroll.h"
#include "saker/kernels/cpu/simd/vec.h"
#include "saker/kernels/layout/packed_matrix.h"
#include "saker/kernels/layout/planes.h"

namespace saker::kernels::SAKER_ISA {

// The largest group: bytes, with scales and biases of float32.
inline constexpr int kWideGroupBytes = (kLargestGroup + 2 * 4) * kBlockRows;

// Words of the same columns of consecutive NR blocks.
struct BlockWords {
  const std::byte* at;
  std::size_t stride;  // From a block to the next.
};

inline U32x16 load_line(const std::byte* at, int line) {
  return load_u32(reinterpret_cast<const std::uint32_t*>(at) + line * kBlockRows);
}

inline void store_line(std::byte* at, int line, U32x16 words) {
  store_u32(reinterpret_cast<std::uint32_t*>(at) + line * kBlockRows, words);
}

template <int left>
[[gnu::always_inline]] inline U32x16 shifted(U32x16 words) {
  if constexpr (left >= 0) {
    return shift_left<left>(words);
  } else {
    return shift_right<-left>(words);
  }
}

// Widens the lines of one run.
template <typename Planes>
[[gnu::always_inline]] inline void widen_run(const std::byte* from, std::byte* to) {
  unroll<Planes::kField>([&](auto line) {
    // Constants, so that no function remains that another set's objects could link to.
    constexpr int kLine = line.kValue;
    constexpr int kLowLine = Planes::low_line(kLine);
    constexpr unsigned kLowMask = Planes::mask(0, Planes::kLow);
    const U32x16 low = shifted<-Planes::low_shift(kLine)>(load_line(from, kLowLine));
    U32x16 words = bit_and(low, broadcast_u32(kLowMask));
    if constexpr (Planes::kHigh > 0) {
      constexpr int kHighLine = Planes::high_line(kLine);
      constexpr int kUp = Planes::kLow - Planes::high_shift(kLine);
      constexpr unsigned kHighMask = Planes::mask(Planes::kLow, Planes::kHigh);
      const U32x16 high = shifted<kUp>(load_line(from, kHighLine));
      words = bit_or(words, bit_and(high, broadcast_u32(kHighMask)));
    }
    store_line(to, kLine, words);
  });
}

// Widens groups of a block and copies their scales and biases.
template <typename Planes>
void widen_groups(const PackedMatrix& weight, const std::byte* from, int groups, std::byte* to) {
  constexpr int kLineBytes = 64;
  const int terms = static_cast<int>(weight.term_bytes());
  for (int g = 0; g < groups; ++g) {
    for (int k = 0; k < weight.group; k += kRunColumns) {
      widen_run<Planes>(from, to);
      from += Planes::kCode * kLineBytes;
      to += Planes::kField * kLineBytes;
    }
    for (int i = 0; i < terms; i += kLineBytes) {
      store_line(to, 0, load_line(from, 0));
      from += kLineBytes;
      to += kLineBytes;
    }
  }
}

// Widens groups [group, group + groups) of blocks [block, block + blocks) into `to`.
[[gnu::noinline]] inline BlockWords widen(
    const PackedMatrix& weight, int block, int blocks, int group, int groups, std::byte* to
) {
  const std::size_t stride = groups * weight.read_group_bytes();
  with_planes(weight.code_bits, [&](auto planes) {
    for (int b = 0; b < blocks; ++b) {
      const std::byte* from = weight.block(block + b) + group * weight.group_bytes();
      widen_groups<decltype(planes)>(weight, from, groups, to + b * stride);
    }
  });
  return {to, stride};
}

}  // namespace saker::kernels::SAKER_ISA
