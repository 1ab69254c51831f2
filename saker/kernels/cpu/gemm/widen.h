// SPDX-License-Identifier: Apache-2.0
#pragma once

// Widens codes in planes and halves, looks up named ones, and unpacks terms of super-blocks
// (packed_matrix.h): the words and terms of some groups are written to L1 just before they are read.

#include "saker/kernels/cpu/gemm/halves.h"
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

// Widens kCount lines of one run.
template <int kFirst, int kCount, int code>
[[gnu::always_inline]] inline void widen_lines(Planes<code>, const std::byte* from, std::byte* to) {
  using Kind = Planes<code>;
  unroll<kCount>([&](auto line) {
    // Constants, so that no function remains that another set's objects could link to.
    constexpr int kLine = kFirst + line.kValue;
    constexpr int kLowLine = Kind::low_line(kLine);
    constexpr unsigned kLowMask = Kind::mask(0, Kind::kLow);
    const U32x16 low = shifted<-Kind::low_shift(kLine)>(load_line(from, kLowLine));
    U32x16 words = bit_and(low, broadcast_u32(kLowMask));
    if constexpr (Kind::kHigh > 0) {
      constexpr int kHighLine = Kind::high_line(kLine);
      constexpr int kUp = Kind::kLow - Kind::high_shift(kLine);
      constexpr unsigned kHighMask = Kind::mask(Kind::kLow, Kind::kHigh);
      const U32x16 high = shifted<kUp>(load_line(from, kHighLine));
      words = bit_or(words, bit_and(high, broadcast_u32(kHighMask)));
    }
    store_line(to, line.kValue, words);
  });
}

// Widens the lines of one run.
template <int code>
[[gnu::always_inline]] inline void widen_run(Planes<code>, const std::byte* from, std::byte* to) {
  widen_lines<0, Planes<code>::kWideLines>(Planes<code>(), from, to);
}

template <int code>
[[gnu::always_inline]] inline void widen_run(Halves<code>, const std::byte* from, std::byte* to) {
  unroll<Halves<code>::kWideLines>([&](auto line) {
    constexpr int kPair = 2 * line.kValue;
    const U32x16 first = pair_in_halves<code, kPair>(from);
    const U32x16 second = pair_in_halves<code, kPair + 1>(from);
    store_line(to, line.kValue, bit_or(first, shift_left<8>(second)));
  });
}

[[gnu::always_inline]] inline void widen_run(TableNames, const std::byte* from, std::byte* to) {
  const U32x16 names = load_line(from, 0);
  const U32x16 mask = broadcast_u32(TableNames::kMask);
  store_line(to, 0, look_up_bytes(kTableCodes, bit_and(names, mask)));
  store_line(to, 1, look_up_bytes(kTableCodes, bit_and(shift_right<4>(names), mask)));
}

inline void copy_lines(const std::byte* from, std::size_t bytes, std::byte* to) {
  for (std::size_t i = 0; i < bytes; i += kLaneBytes) {
    store_line(to + i, 0, load_line(from + i, 0));
  }
}

// Widens the words of a group.
inline void widen_words(const PackedMatrix& weight, const std::byte* from, std::byte* to) {
  if (!weight.is_narrow()) {
    copy_lines(from, weight.word_bytes(), to);
    return;
  }
  with_planes(weight.code_bits, [&](auto planes) {
    using Kind = decltype(planes);
    for (int k = 0; k < weight.group; k += Kind::kColumns) {
      widen_run(planes, from, to);
      from += Kind::kLines * kLaneBytes;
      to += Kind::kWideLines * kLaneBytes;
    }
  });
}

// Widens the words of a super-block's group. Two groups of 16 columns share a run of planes.
inline void widen_super_words(
    const PackedMatrix& weight, const std::byte* super, int group, std::byte* to
) {
  if (!weight.in_planes()) {
    return widen_words(weight, super + group * weight.word_bytes(), to);
  }
  with_planes(weight.code_bits, [&](auto planes) {
    using Kind = decltype(planes);
    if constexpr (Kind::kField == 4) {
      const std::byte* run = super + group / 2 * (Kind::kLines * kLaneBytes);
      if (group % 2 == 0) {
        widen_lines<0, Kind::kWideLines / 2>(planes, run, to);
      } else {
        widen_lines<Kind::kWideLines / 2, Kind::kWideLines / 2>(planes, run, to);
      }
    }
  });
}

// Widens groups of a block and copies their scales and biases.
inline void widen_groups(
    const PackedMatrix& weight, const std::byte* from, int groups, std::byte* to
) {
  const std::size_t terms = weight.term_bytes();
  for (int g = 0; g < groups; ++g) {
    widen_words(weight, from, to);
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
    for (int g = 0; g < count; ++g) {
      widen_super_words(weight, super, first + g, to + g * read_bytes);
    }
    unpack_super_terms(weight, super, first, count, to + weight.read_word_bytes(), read_bytes);
    group += count;
    to += count * read_bytes;
  }
}

// Widens groups [group, group + groups) of blocks [block, block + blocks) into `to`: words of whole
// fields, then scales and biases.
[[gnu::noinline]] inline BlockWords widen(
    const PackedMatrix& weight, int block, int blocks, int group, int groups, std::byte* to
) {
  const std::size_t stride = groups * weight.read_group_bytes();
  for (int b = 0; b < blocks; ++b) {
    if (weight.in_super_blocks()) {
      widen_super_groups(weight, weight.block(block + b), group, groups, to + b * stride);
    } else {
      const std::byte* from = weight.block(block + b) + group * weight.group_bytes();
      widen_groups(weight, from, groups, to + b * stride);
    }
  }
  return {to, stride};
}

}  // namespace saker::kernels::SAKER_ISA
