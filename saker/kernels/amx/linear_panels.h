// SPDX-License-Identifier: Apache-2.0
#pragma once

// Many rows of x times blocks of the weight: two slivers by two blocks share what is loaded, for as
// many columns as a panel holds. Between panels sums go through memory, which changes no bit.

#include "saker/kernels/amx/linear_weights.h"
#include "saker/kernels/amx/results.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kPanelChunks = 8;
inline constexpr int kPanelSteps = kPanelChunks * kChunkSteps;

// The working memory of a thread.
struct PanelMemory {
  alignas(64) WeightTile weights[kTileBlocks][kPanelSteps];
  alignas(64) SumTile sums[kTileSlivers][kTileBlocks];
};

// Some steps of all blocks of a tile.
struct Panel {
  int first_step;
  int steps;
  const std::byte* weights;     // Of the first block.
  std::ptrdiff_t block_stride;  // In bytes.
};

// Two slivers (or the last one) by two blocks (or the last one) of the tile.
struct Unit {
  TileSliver x[2];
  int sliver;
  int slivers;
  int block;
  int blocks;
};

template <int kSlivers, int kBlocks>
void multiply_unit(const Unit& unit, const Panel& panel, PanelMemory& memory) {
  const std::ptrdiff_t stride = unit.x[0].stride;
  const auto each_sum = [&](const auto& function) {
    unroll<kSlivers>([&](auto s) {
      unroll<kBlocks>([&](auto b) {
        function(s, b, memory.sums[unit.sliver + s.kValue][unit.block + b.kValue]);
      });
    });
  };
  each_sum([&](auto s, auto b, float* sums) {
    constexpr int kSum = 2 * s.kValue + b.kValue;
    panel.first_step == 0 ? tile_clear<kSum>() : tile_load<kSum>(sums, stride);
  });
  for (int step = 0; step < panel.steps; ++step) {
    const std::byte* weights = panel.weights + unit.block * panel.block_stride + step * kTileBytes;
    unroll<kBlocks>([&](auto b) {
      tile_load<kLeft + b.kValue>(weights + b.kValue * panel.block_stride, kTileStride);
    });
    unroll<kSlivers>([&](auto s) {
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
  if (unit.slivers == 2) {
    unit.blocks == 2 ? multiply_unit<2, 2>(unit, panel, memory)
                     : multiply_unit<2, 1>(unit, panel, memory);
  } else {
    unit.blocks == 2 ? multiply_unit<1, 2>(unit, panel, memory)
                     : multiply_unit<1, 1>(unit, panel, memory);
  }
}

// Where the weights of a panel lie; codes are unpacked first.
inline void find_weights(
    const PackedMatrix& weight, const LinearTile& tile, Panel& panel, PanelMemory& memory
) {
  if (!weight.has_groups()) {
    panel.weights = weight.block(tile.first_block) + panel.first_step * kTileBytes;
    panel.block_stride = static_cast<std::ptrdiff_t>(weight.block_bytes());
    return;
  }
  panel.weights = memory.weights[0][0];
  panel.block_stride = sizeof(memory.weights[0]);
  const std::size_t chunk_bytes = weight.chunk_bytes();
  with_chunk(weight, [&](auto type) {
    Unpacking<decltype(type)> unpacking;
    for (int b = 0; b < tile.block_count; ++b) {
      const std::byte* chunk =
          weight.block(tile.first_block + b) + panel.first_step / kChunkSteps * chunk_bytes;
      for (int step = 0; step < panel.steps; step += kChunkSteps, chunk += chunk_bytes) {
        unpacking.start(chunk, chunk + chunk_bytes, memory.weights[b] + step);
        unpacking.unpack_rows(0, kBlockRows);
      }
    }
  });
}

inline void multiply_panel(
    const PackedMatrix& weight, const LinearTile& tile, const Panel& panel, PanelMemory& memory
) {
  Unit unit = {};
  for (unit.sliver = 0; unit.sliver < tile.sliver_count; unit.sliver += 2) {
    unit.slivers = smaller(2, tile.sliver_count - unit.sliver);
    for (int s = 0; s < unit.slivers; ++s) {
      const int sliver = tile.first_sliver + unit.sliver + s;
      unit.x[s] = tile_sliver(weight, tile.slivers, tile.prepared, sliver);
    }
    for (unit.block = 0; unit.block < tile.block_count; unit.block += 2) {
      unit.blocks = smaller(2, tile.block_count - unit.block);
      multiply_any_unit(unit, panel, memory);
    }
  }
}

inline void multiply_many_tiled(const PackedMatrix& weight, const LinearTile& tile) {
  alignas(64) thread_local PanelMemory memory;
  const int width = tile.slivers.first_row(1);
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
  for (int s = 0; s < tile.sliver_count; ++s) {
    const int first = tile.slivers.first_row(tile.first_sliver + s);
    const int end = tile.slivers.first_row(tile.first_sliver + s + 1);
    const ResultPart part = {first, end, tile.first_block, tile.block_count};
    store_rows(weight, tile, part, memory.sums[s]);
  }
}

}  // namespace saker::kernels::SAKER_ISA
