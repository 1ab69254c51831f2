// SPDX-License-Identifier: Apache-2.0
#pragma once

// Widens codes in planes and terms of super-blocks (packed_matrix.h): the words and terms of some
// groups are written to L1 just before they are read.

#include "saker/kernels/cpu/gemm/super_terms.h"
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

// Widens the codes of `columns` columns.
template <typename Planes>
[[gnu::always_inline]] inline void widen_runs(const std::byte* from, int columns, std::byte* to) {
  for (int k = 0; k < columns; k += kRunColumns) {
    widen_run<Planes>(from, to);
    from += Planes::kCode * kLaneBytes;
    to += Planes::kField * kLaneBytes;
  }
}

inline void copy_lines(const std::byte* from, std::size_t bytes, std::byte* to) {
  for (std::size_t i = 0; i < bytes; i += kLaneBytes) {
    store_line(to + i, 0, load_line(from + i, 0));
  }
}

// Widens groups of a block and copies their scales and biases.
template <typename Planes>
void widen_groups(const PackedMatrix& weight, const std::byte* from, int groups, std::byte* to) {
  const std::size_t terms = weight.term_bytes();
  for (int g = 0; g < groups; ++g) {
    widen_runs<Planes>(from, weight.group, to);
    from += weight.word_bytes();
    to += weight.read_word_bytes();
    if (terms < kLaneBytes) {
      __builtin_memcpy(to, from, kLaneBytes / 2);  // Scales alone.
    } else {
      copy_lines(from, terms, to);
    }
    from += terms;
    to += terms;
  }
}

// Widens groups of a block whose codes and terms lie in super-blocks.
inline void widen_super_groups(
    const PackedMatrix& weight, const std::byte* block, int group, int groups, std::byte* to
) {
  const int of_super = weight.super_groups();
  const std::size_t read_bytes = weight.read_group_bytes();
  for (int end = group + groups; group < end;) {
    const std::byte* super = block + group / of_super * weight.super_bytes();
    const int first = group % of_super;
    const int count = end - group < of_super - first ? end - group : of_super - first;
    const std::byte* codes = super + first * weight.word_bytes();
    if (!weight.in_planes()) {
      for (int g = 0; g < count; ++g) {
        copy_lines(codes + g * weight.word_bytes(), weight.word_bytes(), to + g * read_bytes);
      }
    } else {
      with_planes(weight.code_bits, [&](auto planes) {
        // A group of 16 columns is half a run: then two groups are widened together.
        alignas(64) std::byte run[decltype(planes)::kField * kLaneBytes];
        for (int k = 0; k < count * weight.group; k += kRunColumns) {
          widen_run<decltype(planes)>(codes, run);
          codes += decltype(planes)::kCode * kLaneBytes;
          const std::size_t half = sizeof(run) / 2;
          std::byte* const at = to + k / weight.group * read_bytes;
          copy_lines(run, half, at);
          copy_lines(run + half, half, weight.group < kRunColumns ? at + read_bytes : at + half);
        }
      });
    }
    unpack_super_terms(weight, super, first, count, to + weight.read_word_bytes(), read_bytes);
    group += count;
    to += count * read_bytes;
  }
}

// Widens groups [group, group + groups) of blocks [block, block + blocks) into `to`. REQUIRES: they
// are whole runs of 32 columns.
[[gnu::noinline]] inline BlockWords widen(
    const PackedMatrix& weight, int block, int blocks, int group, int groups, std::byte* to
) {
  const std::size_t stride = groups * weight.read_group_bytes();
  if (weight.in_super_blocks()) {
    for (int b = 0; b < blocks; ++b) {
      widen_super_groups(weight, weight.block(block + b), group, groups, to + b * stride);
    }
    return {to, stride};
  }
  with_planes(weight.code_bits, [&](auto planes) {
    for (int b = 0; b < blocks; ++b) {
      const std::byte* from = weight.block(block + b) + group * weight.group_bytes();
      widen_groups<decltype(planes)>(weight, from, groups, to + b * stride);
    }
  });
  return {to, stride};
}

}  // namespace saker::kernels::SAKER_ISA
