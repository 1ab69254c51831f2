// SPDX-License-Identifier: Apache-2.0
#pragma once

// The panel of a tile, and the unpacking of a weight's words into it.

#include "saker/kernels/cpu/linear_tiles.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kSmallestGroup = 32;
inline constexpr int kPanelGroups = kPanelColumns / kSmallestGroup;

// Columns [first, first + count) of kBlockStep blocks, unpacked.
struct PanelRange {
  int first_block;
  int blocks;
  int first;
  int count;
};

// The working memory of one tile.
template <typename Format>
struct TileMemory {
  using Input = typename Format::Operand::Input;
  alignas(64) Input panel[kPanelColumns / Format::Operand::kPerOperand][kBlockStep][kBlockRows];
  // Of the panel's groups, see add_group.
  alignas(64) float scales[kPanelGroups][kBlockStep][kBlockRows];
  alignas(64) float factors[kPanelGroups][kBlockStep][kBlockRows];
  alignas(64) float sums[kTileBlocks / kBlockStep][kTileRows][kBlockStep][kBlockRows];
};

// Unpacks `steps` words of block b from panel column `at` on; returns what follows them.
template <typename Format>
[[gnu::always_inline]] inline const std::byte* unpack_words(
    const std::byte* words, int steps, int b, int at, TileMemory<Format>& memory
) {
  using Operand = typename Format::Operand;
  for (int step = 0; step < steps; ++step) {
    const auto word = Format::load_word(words);
    unroll<Format::kOperands>([&](auto i) {
      Operand::store_panel(
          memory.panel[at + i.kValue][b], Format::template operand<i.kValue>(word)
      );
    });
    words += Format::kStepBytes;
    at += Format::kOperands;
  }
  return words;
}

template <typename Format>
void unpack_panel(const PackedMatrix& weight, const PanelRange& range, TileMemory<Format>& memory) {
  using Operand = typename Format::Operand;
  const int group = kGrouped<Format> ? weight.group : range.count;
  const int steps = (inputs_per_row<Format>(group) + Format::kOperands - 1) / Format::kOperands;
  for (int b = 0; b < range.blocks; ++b) {
    const std::byte* words = weight.block(range.first_block + b);
    if constexpr (kGrouped<Format>) {
      words += range.first / weight.group * weight.group_bytes();
    } else {
      words += range.first / Operand::kPerOperand / Format::kOperands * Format::kStepBytes;
    }
    int at = 0;
    for (int k = 0; k < range.count; k += group) {
      words = unpack_words<Format>(words, steps, b, at, memory);
      at += steps * Format::kOperands;
      if constexpr (kGrouped<Format>) {
        const std::byte* biases = words + kBlockRows * scale_bytes(weight.scale_kind);
        const F32x16 scale = load_scales(weight.scale_kind, words);
        const F32x16 bias = load_scales(weight.scale_kind, biases);
        store(memory.scales[k / group][b], scale);
        store(memory.factors[k / group][b], sum_factor<Format>(scale, bias));
        words += weight.group_bytes() - weight.group_word_bytes();
      }
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
