// SPDX-License-Identifier: Apache-2.0
#pragma once

// Many rows of x times NR blocks of the weight. Up to kPanelColumns columns of a few blocks are
// unpacked into a panel that stays in L1, and micro-panels of rows are multiplied with it. Between
// panels the sums go through memory, which changes no bit.

#include "saker/kernels/cpu/gemm/panels.h"

namespace saker::kernels::SAKER_ISA {

// The panel of blocks from `block` up to `end` that starts at column k.
[[gnu::always_inline]] inline PanelRange panel_at(
    const PackedMatrix& weight, int k, int block, int end
) {
  return {block, smaller(kBlockStep, end - block), k, smaller(kPanelColumns, weight.columns - k)};
}

// The panel that is unpacked next. After a tile's last panel it is the first one of the blocks
// behind the tile, which its thread usually takes next.
[[gnu::always_inline]] inline PanelRange panel_after(
    const PackedMatrix& weight, const LinearTile& tile, const PanelRange& range
) {
  const int end = tile.first_block + tile.block_count;
  if (range.first_block + kBlockStep < end) {
    return panel_at(weight, range.first, range.first_block + kBlockStep, end);
  }
  if (range.first + kPanelColumns < weight.columns) {
    return panel_at(weight, range.first + kPanelColumns, tile.first_block, end);
  }
  return panel_at(weight, 0, end, weight.blocks());
}

// Writes the results of a micro-panel's rows; the first one is `row` of the result.
inline void store_rows(
    const PackedMatrix& weight,
    const LinearTile& tile,
    const PanelRange& range,
    int row,
    int rows,
    const float (*sums)[kBlockStep][kBlockRows]
) {
  for (int i = 0; i < rows; ++i) {
    for (int b = 0; b < range.blocks; ++b) {
      store_result(weight, tile, row + i, range.first_block + b, load(sums[i][b]));
    }
  }
}

// Multiplies all micro-panels of a tile with a panel; after the last panel also finishes and writes
// their sums. Prefetches `next` meanwhile.
template <typename Format>
void multiply_micro_panels(
    const PackedMatrix& weight,
    const LinearTile& tile,
    const PanelRange& range,
    const PanelRange& next,
    TileMemory<Format>& memory
) {
  auto* sums = memory.sums[(range.first_block - tile.first_block) / kBlockStep];
  const int first_row = tile.micro_panels.first_row(tile.first_micro_panel);
  for (int i = 0; i < tile.micro_panel_count; ++i) {
    prefetch_panel<Format>(weight, next, i, tile.micro_panel_count);
    const auto x = micro_panel_at<Format>(weight, tile, tile.first_micro_panel + i);
    const int row = tile.micro_panels.first_row(tile.first_micro_panel + i);
    auto* of_micro_panel = sums + row - first_row;
    multiply_micro_panel_rows<Format>(weight, range, memory, x, of_micro_panel);
    if (range.first + range.count == weight.columns) {
      store_rows(weight, tile, range, row, x.rows, of_micro_panel);
    }
  }
}

template <typename Format>
void multiply_many(const PackedMatrix& weight, const LinearTile& tile) {
  TileMemory<Format> memory;
  const int end = tile.first_block + tile.block_count;
  const int row_count =
      tile.micro_panels.first_row(tile.first_micro_panel + tile.micro_panel_count) -
      tile.micro_panels.first_row(tile.first_micro_panel);
  for (int block = tile.first_block; block < end; block += kBlockStep) {
    auto* sums = memory.sums[(block - tile.first_block) / kBlockStep];
    __builtin_memset(sums, 0, static_cast<std::size_t>(row_count) * sizeof(*sums));
  }
  if (tile.block_count % kBlockStep != 0) {
    __builtin_memset(memory.panel, 0, sizeof(memory.panel));
    __builtin_memset(memory.scales, 0, sizeof(memory.scales));
    __builtin_memset(memory.factors, 0, sizeof(memory.factors));
    __builtin_memset(memory.starts, 0, sizeof(memory.starts));
  }
  for (int k = 0; k < weight.columns; k += kPanelColumns) {
    for (int block = tile.first_block; block < end; block += kBlockStep) {
      const PanelRange range = panel_at(weight, k, block, end);
      const PanelRange next = panel_after(weight, tile, range);
      unpack_panel<Format>(weight, range, memory);
      multiply_micro_panels<Format>(weight, tile, range, next, memory);
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
