// SPDX-License-Identifier: Apache-2.0
#pragma once

// Unpacks affine codes from memory to bytes for tiles, as many columns at a time as fit L1 beside
// x.

#include "saker/kernels/cpu/amx/bytes.h"
#include "saker/kernels/cpu/gemm/tiles.h"
#include "saker/kernels/cpu/gemm/widen.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kCodeBlocks = 4;          // Multiplied together; they share x.
inline constexpr int kCodePanelColumns = 128;  // Fits L1.
inline constexpr int kCodePanelGroups = kCodePanelColumns / 16;

// A panel of a block: bytes, with scales and biases of float32.
inline constexpr int kWidePanelBytes = (kCodePanelColumns + kCodePanelGroups * 2 * 4) * kBlockRows;

// Some groups of some NR blocks.
struct CodePanel {
  int first_group;
  int groups;
  int first_block;
  int blocks;
};

// A panel as products read it: the codes of each block as tiles, group by group, and the terms of
// its groups (see GroupScaleBias).
struct PanelCodes {
  alignas(64) std::byte bytes[kCodeBlocks][kCodePanelColumns * kBlockRows];
  alignas(64) float terms[kCodePanelGroups][kCodeBlocks][2][kBlockRows];
  alignas(64) std::byte wide[kCodeBlocks * kWidePanelBytes];  // See widen().
};

// Prefetches the codes that follow a panel's group: the blocks' next groups or, after the last one,
// the blocks that the thread usually takes next.
inline void prefetch_codes(const PackedMatrix& weight, const CodePanel& panel, int g) {
  const int group = panel.first_group + panel.groups + g;
  const bool more = group < weight.groups();
  const std::size_t bytes = weight.group_bytes();
  for (int b = 0; b < panel.blocks; ++b) {
    const int block = panel.first_block + b + (more ? 0 : kTileBlocks);
    if (block < weight.blocks()) {
      prefetch_l2(weight.block(block) + (more ? group : g) * bytes, bytes);
    }
  }
}

// Unpacks a group's lines of words to lines of a tile. With 4-bit codes the even columns come
// first, then the odd ones.
template <typename Format, int kGroup>
[[gnu::always_inline]] inline void unpack_lines(const std::byte* from, std::byte* to) {
  constexpr int kLines = kGroup / (2 * Format::kPairDistance);
#pragma GCC unroll 32
  for (int line = 0; line < kLines; ++line) {
    const U32x16 words = load_line(from, line);
    if constexpr (Format::kPairDistance == 4) {
      store_nibbles(words, reinterpret_cast<std::uint32_t*>(to) + 2 * line * kLanes);
    } else {
      store_line(to, line, words);
    }
  }
}

template <typename Format, int kGroup>
void unpack_codes(const PackedMatrix& weight, const CodePanel& panel, PanelCodes& to) {
  BlockWords words = {
      weight.block(panel.first_block) + panel.first_group * weight.group_bytes(),
      weight.block_bytes(),
  };
  if (weight.is_widened()) {
    words =
        widen(weight, panel.first_block, panel.blocks, panel.first_group, panel.groups, to.wide);
  }
  for (int b = 0; b < panel.blocks; ++b) {
    const std::byte* at = words.at + b * words.stride;
    for (int g = 0; g < panel.groups; ++g, at += weight.read_group_bytes()) {
      unpack_lines<Format, kGroup>(at, to.bytes[b] + g * kGroup * kBlockRows);
      const GroupScaleBias terms = load_terms<Format>(weight, at + weight.read_word_bytes());
      store(to.terms[g][b][0], terms.scale);
      store(to.terms[g][b][1], terms.factor);
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
