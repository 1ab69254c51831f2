// SPDX-License-Identifier: Apache-2.0
#pragma once

// Many rows of x times NR blocks of the weight. Two micro-panels by two blocks share their loads,
// for as many columns as a panel holds. Between panels sums go through memory, which changes no
// bit.

#include "saker/kernels/cpu/amx/linear_weights.h"
#include "saker/kernels/cpu/amx/results.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kPanelChunks = 8;
inline constexpr int kPanelSteps = kPanelChunks * kChunkSteps;

// The working memory of a thread.
struct PanelMemory {
  alignas(64) WeightTile weights[kTileBlocks][kPanelSteps];
  alignas(64) SumTile sums[kPanelMicroPanels][kTileBlocks];
};

// Some steps of all NR blocks of a tile.
struct Panel {
  int first_step;
  int steps;
  const std::byte* blocks[kTileBlocks];  // Consecutive tiles of each block.
};

// Two micro-panels (or the last one) by two NR blocks (or the last one) of the tile.
struct Unit {
  TileMicroPanel x[2];
  int micro_panel;
  int micro_panels;
  int block;
  int blocks;
};

template <int kMicroPanels, int kBlocks>
void multiply_unit(const Unit& unit, const Panel& panel, PanelMemory& memory) {
  const std::ptrdiff_t stride = unit.x[0].stride;
  const auto each_sum = [&](const auto& function) {
    unroll<kMicroPanels>([&](auto s) {
      unroll<kBlocks>([&](auto b) {
        function(s, b, memory.sums[unit.micro_panel + s.kValue][unit.block + b.kValue]);
      });
    });
  };
  each_sum([&](auto s, auto b, float* sums) {
    constexpr int kSum = 2 * s.kValue + b.kValue;
    panel.first_step == 0 ? tile_clear<kSum>() : tile_load<kSum>(sums, stride);
  });
  for (int step = 0; step < panel.steps; ++step) {
    unroll<kBlocks>([&](auto b) {
      const std::byte* weights = panel.blocks[unit.block + b.kValue] + step * kTileBytes;
      tile_load<kLeft + b.kValue>(weights, kTileStride);
    });
    unroll<kMicroPanels>([&](auto s) {
      tile_load<kRight + s.kValue>(unit.x[s.kValue].step(panel.first_step + step), stride);
      unroll<kBlocks>([&](auto b) {
        tile_add_products<2 * s.kValue + b.kValue, kLeft + b.kValue, kRight + s.kValue>();
      });
    });
  }
  each_sum([&](auto s, auto b, float* sums) { tile_store<2 * s.kValue + b.kValue>(sums, stride); });
}

// multiply_unit for one or two of each.
inline void multiply_any_unit(const Unit& unit, const Panel& panel, PanelMemory& memory) {
  if (unit.micro_panels == 2) {
    unit.blocks == 2 ? multiply_unit<2, 2>(unit, panel, memory)
                     : multiply_unit<2, 1>(unit, panel, memory);
  } else {
    unit.blocks == 2 ? multiply_unit<1, 2>(unit, panel, memory)
                     : multiply_unit<1, 1>(unit, panel, memory);
  }
}

// Copies a block's steps, which lie row by row, to consecutive tiles.
inline void gather_tiles(
    const PackedMatrix& weight, const std::byte* block, const Panel& panel, WeightTile* tiles
) {
  block += panel.first_step * weight.tile_step_bytes();
  for (int row = 0; row < kBlockRows; ++row) {
    const auto* from =
        reinterpret_cast<const std::uint32_t*>(block + row * weight.tile_row_bytes());
    for (int step = 0; step < panel.steps; ++step, from += kTilePairs) {
      store_u32(reinterpret_cast<std::uint32_t*>(tiles[step] + row * kTileStride), load_u32(from));
    }
  }
}

template <typename Chunk>
void unpack_tiles(
    const PackedMatrix& weight, const std::byte* block, const Panel& panel, WeightTile* tiles
) {
  Unpacking<Chunk> unpacking;
  const std::size_t chunk_bytes = weight.chunk_bytes();
  const std::byte* chunk = block + panel.first_step / kChunkSteps * chunk_bytes;
  for (int step = 0; step < panel.steps; step += kChunkSteps, chunk += chunk_bytes) {
    unpacking.start(chunk, chunk + chunk_bytes, tiles + step);
    unpacking.unpack_rows(0, kBlockRows);
  }
}

// Finds the weights of a panel as tiles. Unless they are stored as tiles, they are unpacked or
// copied here.
inline void find_weights(
    const PackedMatrix& weight, const LinearTile& tile, Panel& panel, PanelMemory& memory
) {
  for (int b = 0; b < tile.block_count; ++b) {
    const std::byte* block = weight.block(tile.first_block + b);
    panel.blocks[b] = memory.weights[b][0];
    if (weight.has_groups()) {
      with_chunk(weight, [&](auto type) {
        unpack_tiles<decltype(type)>(weight, block, panel, memory.weights[b]);
      });
    } else if (weight.in_place()) {
      gather_tiles(weight, block, panel, memory.weights[b]);
    } else {
      panel.blocks[b] = block + panel.first_step * kTileBytes;
    }
  }
}

inline void multiply_panel(
    const PackedMatrix& weight, const LinearTile& tile, const Panel& panel, PanelMemory& memory
) {
  Unit unit = {};
  for (unit.micro_panel = 0; unit.micro_panel < tile.micro_panel_count; unit.micro_panel += 2) {
    unit.micro_panels = smaller(2, tile.micro_panel_count - unit.micro_panel);
    for (int s = 0; s < unit.micro_panels; ++s) {
      const int micro_panel = tile.first_micro_panel + unit.micro_panel + s;
      unit.x[s] = tile_micro_panel(weight, tile.micro_panels, tile.prepared, micro_panel);
    }
    for (unit.block = 0; unit.block < tile.block_count; unit.block += 2) {
      unit.blocks = smaller(2, tile.block_count - unit.block);
      multiply_any_unit(unit, panel, memory);
    }
  }
}

inline void multiply_many_tiled(const PackedMatrix& weight, const LinearTile& tile) {
  alignas(64) thread_local PanelMemory memory;
  const int width = tile.micro_panels.first_row(1);
  const int steps = tile_steps(weight);
  {
    const Tiles registers(kTileHeight, width);
    for (int step = 0; step < steps; step += kPanelSteps) {
      Panel panel = {};
      panel.first_step = step;
      panel.steps = smaller(kPanelSteps, steps - step);
      find_weights(weight, tile, panel, memory);
      multiply_panel(weight, tile, panel, memory);
    }
  }
  for (int s = 0; s < tile.micro_panel_count; ++s) {
    const int first = tile.micro_panels.first_row(tile.first_micro_panel + s);
    const int end = tile.micro_panels.first_row(tile.first_micro_panel + s + 1);
    const ResultPart part = {first, end, tile.first_block, tile.block_count};
    store_rows(weight, tile, part, memory.sums[s]);
  }
}

}  // namespace saker::kernels::SAKER_ISA
