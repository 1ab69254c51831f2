// SPDX-License-Identifier: Apache-2.0
#pragma once

// The panel of a tile, and the unpacking of a weight's words into it.

#include "saker/kernels/cpu/gemm/tiles.h"

namespace saker::kernels::SAKER_ISA {

static_assert(kPanelColumns == kSuperColumns);  // Whose terms are unpacked at once.
inline constexpr int kSmallestGroup = 16;
inline constexpr int kPanelGroups = kPanelColumns / kSmallestGroup;

// Columns [first, first + count) of up to kBlockStep NR blocks, unpacked together.
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
  // Per group of the panel, see GroupScaleBias.
  alignas(64) float scales[kPanelGroups][kBlockStep][kBlockRows];
  alignas(64) float factors[kPanelGroups][kBlockStep][kBlockRows];
  // Start values of the sums of the panel's groups, without the part that depends on the row of x.
  alignas(64) std::uint32_t starts[kIsWinograd<Format> ? kPanelGroups : 1][kBlockStep][kBlockRows];
  alignas(64) float sums[kTileBlocks / kBlockStep][kTileRows][kBlockStep][kBlockRows];
};

// Byte offset in a block of column k, the first of a group or panel.
template <typename Format>
std::size_t column_offset(const PackedMatrix& weight, int k) {
  if constexpr (kGrouped<Format>) {
    return k / weight.group * weight.group_bytes();
  } else {
    constexpr int kPerStep = Format::Operand::kPerOperand * Format::kOperands;
    return static_cast<std::size_t>(k / kPerStep) * Format::kStepBytes;
  }
}

// Prefetches part `part` of `parts` of the packed bytes of a panel.
template <typename Format>
void prefetch_panel(const PackedMatrix& weight, const PanelRange& range, int part, int parts) {
  const std::size_t first = column_offset<Format>(weight, range.first);
  const std::size_t bytes = column_offset<Format>(weight, range.first + range.count) - first;
  const std::size_t begin = bytes * part / parts;
  const std::size_t end = bytes * (part + 1) / parts;
  for (int b = 0; b < range.blocks; ++b) {
    prefetch_l2(weight.block(range.first_block + b) + first + begin, end - begin);
  }
}

// Unpacks `steps` words of each block from panel column `at` on. Goes step by step through all
// blocks, so that the panel is written in order of address.
template <typename Format>
[[gnu::always_inline]] inline void unpack_words(
    const PanelRange& range, BlockWords words, int steps, int at, TileMemory<Format>& memory
) {
  using Operand = typename Format::Operand;
  const auto unpack = [&](int b) {
    const auto word = Format::load_word(words.at + b * words.stride);
    unroll<Format::kOperands>([&](auto i) {
      Operand::store_panel(
          memory.panel[at + i.kValue][b], Format::template operand<i.kValue>(word)
      );
    });
  };
  for (int step = 0; step < steps; ++step) {
    if (range.blocks == kBlockStep) {
      unroll<kBlockStep>([&](auto b) { unpack(b.kValue); });
    } else {
      for (int b = 0; b < range.blocks; ++b) {
        unpack(b);
      }
    }
    words.at += Format::kStepBytes;
    at += Format::kOperands;
  }
}

// Unpacks the scales of a group.
template <typename Format>
[[gnu::always_inline]] inline void unpack_scales(
    const PackedMatrix& weight,
    const PanelRange& range,
    BlockWords scales,
    int group,
    TileMemory<Format>& memory
) {
  for (int b = 0; b < range.blocks; ++b) {
    const auto terms = load_terms<Format>(weight, scales.at + b * scales.stride);
    store(memory.scales[group][b], terms.scale);
    store(memory.factors[group][b], terms.factor);
  }
}

template <typename Format>
void unpack_panel(const PackedMatrix& weight, const PanelRange& range, TileMemory<Format>& memory) {
  constexpr int kPerStep = Format::Operand::kPerOperand * Format::kOperands;
  alignas(64) std::byte terms[kBlockStep * kMostSuperGroups * kSuperTermBytes];
  const int group = kGrouped<Format> ? weight.group : range.count;
  const int steps = (group + kPerStep - 1) / kPerStep;
  int at = 0;
  GroupPlaces places = {};
  if constexpr (kGrouped<Format>) {
    const int first = range.first / group;
    places =
        find_groups(weight, range.first_block, range.blocks, first, range.count / group, terms);
  }
  for (int k = 0; k < range.count; k += group) {
    if constexpr (kGrouped<Format>) {
      unpack_words<Format>(range, places.words, steps, at, memory);
      unpack_scales<Format>(weight, range, places.terms, k / group, memory);
      places.advance(1);
    } else {
      const int first = range.first + k;
      const std::byte* words =
          weight.block(range.first_block) + first / kPerStep * Format::kStepBytes;
      unpack_words<Format>(range, {words, weight.block_bytes()}, steps, at, memory);
    }
    if constexpr (kIsWinograd<Format>) {
      constexpr int kStride = kBlockStep * kBlockRows;
      for (int b = 0; b < range.blocks; ++b) {
        const auto start =
            minus_own_products(memory.panel[at][b], steps * Format::kOperands, kStride);
        store_u32(memory.starts[k / group][b], start);
      }
    }
    at += steps * Format::kOperands;
  }
}

}  // namespace saker::kernels::SAKER_ISA
