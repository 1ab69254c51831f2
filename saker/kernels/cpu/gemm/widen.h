// SPDX-License-Identifier: Apache-2.0
#pragma once

// Widens codes in halves, looks up named ones, and unpacks terms of super-blocks (packed_matrix.h) for
// products on tiles and of bytes: words and terms of some groups are written to L1 just before they are
// read.

#include "saker/kernels/cpu/gemm/narrow_formats.h"
#include "saker/kernels/cpu/gemm/super_terms.h"
#include "saker/kernels/cpu/simd/unroll.h"
#include "saker/kernels/cpu/simd/vec.h"
#include "saker/kernels/layout/packed_matrix.h"

namespace saker::kernels::SAKER_ISA {

// The largest group: bytes, with scales and biases of float32.
inline constexpr int kWideGroupBytes = (kLargestGroup + 2 * 4) * kBlockRows;

// Widens the lines of one run.
template <int code>
[[gnu::always_inline]] inline void widen_run(Halves<code>, const std::byte* from, std::byte* to) {
  using Kind = Halves<code>;
  unroll<Kind::kWideLines>([&](auto line) {
    U32x16 words;
    unroll<Kind::kDistance>([&](auto field) {
      constexpr int kPair = line.kValue * Kind::kDistance + field.kValue;
      const U32x16 pair = pair_in_halves<code, kPair, field.kValue * Kind::kField>(from);
      words = field.kValue == 0 ? pair : bit_or(words, pair);
    });
    store_line(to, line.kValue, words);
  });
}

[[gnu::always_inline]] inline void widen_run(TableNames, const std::byte* from, std::byte* to) {
  const U32x16 names = load_line(from, 0);
  store_line(to, 0, look_up_names<0>(names));
  store_line(to, 1, look_up_names<1>(names));
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
  with_narrow_codes(weight.code_bits, [&](auto codes) {
    using Kind = decltype(codes);
    for (int k = 0; k < weight.group; k += Kind::kColumns) {
      widen_run(codes, from, to);
      from += Kind::kRunBytes;
      to += Kind::kWideLines * kLaneBytes;
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
      widen_words(weight, super + (first + g) * weight.word_bytes(), to + g * read_bytes);
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
