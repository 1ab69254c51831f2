// SPDX-License-Identifier: Apache-2.0
#pragma once

// A panel: some steps of all blocks of a tile as weight tiles, and the memory that goes with it.

#include "saker/kernels/amx/linear_weights.h"
#include "saker/kernels/cpu/linear_bodies.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kPanelSteps = 4;  // Holds whole groups: 128 columns.
inline constexpr int kPanelMostGroups = kPanelSteps;

using UnitProducts = float[2][2][kTileHeight][kBlockRows];  // [sliver][block]

// The working memory of one tile.
struct PanelMemory {
  alignas(64) WeightTile panel[kTileBlocks][kPanelSteps];
  alignas(64) float scales[kTileBlocks][kPanelMostGroups][kBlockRows];
  alignas(64) float factors[kTileBlocks][kPanelMostGroups][kBlockRows];
  alignas(64) UnitProducts products[2];
  alignas(64) float sums[kTileSlivers * kTileHeight][kTileBlocks][kBlockRows];
};

struct Panel {
  int first_step;
  int steps;
};

// Columns of one block of codes, with the groups' factors.
template <typename Format>
void fill_codes(
    const GroupLayout& layout,
    const std::byte* first_group,
    const Panel& panel,
    int block,
    PanelMemory& memory
) {
  for (int g = 0; g < panel.steps / layout.steps; ++g) {
    const std::byte* group = first_group + static_cast<std::size_t>(g) * layout.group_bytes;
    for (int step = 0; step < layout.steps; ++step) {
      unpack_codes<Format>(
          group + step * kStepCodes<Format>, memory.panel[block][g * layout.steps + step]
      );
    }
    const GroupFactors of = group_factors<Format>(layout, group);
    store(memory.scales[block][g], of.scale);
    store(memory.factors[block][g], of.factor);
  }
}

// Columns of one block of bf16 weights.
inline void fill_dense(
    const PackedMatrix& weight, int from, const Panel& panel, int block, PanelMemory& memory
) {
  auto* to = memory.panel[block];
  const int whole = smaller(panel.steps, weight.columns / kTileColumns - panel.first_step);
  const std::size_t bytes = static_cast<std::size_t>(whole) * kTileBytes;
  __builtin_memcpy(to, dense_step(weight, from, panel.first_step), bytes);
  if (whole < panel.steps) {
    copy_last_step(weight, from, to[whole]);
  }
}

template <typename Format>
void fill_panel(
    const PackedMatrix& weight, const LinearTile& tile, const Panel& panel, PanelMemory& memory
) {
  for (int b = 0; b < tile.block_count; ++b) {
    const int block = tile.first_block + b;
    if constexpr (kGrouped<Format>) {
      const GroupLayout layout(weight);
      const std::byte* group = layout.group(weight, block, panel.first_step / layout.steps);
      fill_codes<Format>(layout, group, panel, b, memory);
    } else {
      fill_dense(weight, block, panel, b, memory);
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
