// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where products read the words and the terms of some groups of NR blocks: in the weight's memory, or,
// terms of super-blocks, in working memory to which they are unpacked.

#include "saker/kernels/cpu/gemm/super_terms.h"

namespace saker::kernels::SAKER_ISA {

struct GroupPlaces {
  BlockWords words;
  BlockWords terms;       // Scales, then biases if there are any.
  std::size_t word_step;  // From the words of a group to those of the next.
  std::size_t term_step;

  [[gnu::always_inline]] void advance(std::size_t groups) {
    words.at += groups * word_step;
    terms.at += groups * term_step;
  }
};

// Bytes of a group's unpacked terms.
inline constexpr int kSuperTermBytes = 2 * kLaneBytes;
// Groups of a super-block, at most.
inline constexpr int kMostSuperGroups = kSuperColumns / 16;

[[gnu::noinline]] inline void unpack_block_terms(
    const PackedMatrix& weight, int block, int blocks, int group, int groups, std::byte* to
) {
  const int of_super = weight.super_groups();
  const std::size_t super = group / of_super * weight.super_bytes();
  for (int b = 0; b < blocks; ++b, to += groups * kSuperTermBytes) {
    const std::byte* from = weight.block(block + b) + super;
    unpack_super_terms(weight, from, group % of_super, groups, to, kSuperTermBytes);
  }
}

// Groups [group, group + groups) of blocks [block, block + blocks). `memory` holds kSuperTermBytes for
// each. REQUIRES: groups of super-blocks lie in one of these.
[[gnu::always_inline]] inline GroupPlaces find_groups(
    const PackedMatrix& weight, int block, int blocks, int group, int groups, std::byte* memory
) {
  const std::byte* from = weight.block(block);
  const std::size_t stride = weight.block_bytes();
  const std::size_t words = weight.word_bytes();
  if (weight.in_super_blocks()) {
    unpack_block_terms(weight, block, blocks, group, groups, memory);
    const int of_super = weight.super_groups();
    from += group / of_super * weight.super_bytes() + group % of_super * words;
    const BlockWords terms = {memory, static_cast<std::size_t>(groups) * kSuperTermBytes};
    return {{from, stride}, terms, words, kSuperTermBytes};
  }
  const std::size_t step = weight.group_bytes();
  from += group * step;
  return {{from, stride}, {from + words, stride}, step, step};
}

}  // namespace saker::kernels::SAKER_ISA
