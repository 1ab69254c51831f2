// SPDX-License-Identifier: Apache-2.0
#pragma once

// What four sums in registers stand for: two slivers of x by two blocks of the weight.

#include "saker/kernels/amx/linear_inputs.h"
#include "saker/kernels/cpu/unroll.h"

namespace saker::kernels::SAKER_ISA {

// Two slivers (or the last one) by two blocks (or the last one) of the tile, in one group.
struct Unit {
  TileSliver x[2];
  int slivers;
  int sliver;  // In the tile, like block.
  int blocks;
  int block;
  int group;  // In the panel.
};

// Calls function with the tile register and place of each of the unit's sums.
template <int kSlivers, int kBlocks, typename Function>
[[gnu::always_inline]] inline void each_sum(const Function& function) {
  unroll<kSlivers>([&](auto s) { unroll<kBlocks>([&](auto b) { function(s, b); }); });
}

// Calls function<slivers, blocks>() for one or two of each.
template <typename Function>
[[gnu::always_inline]] inline void with_counts(const Unit& unit, const Function& function) {
  if (unit.slivers == 2) {
    unit.blocks == 2 ? function(Index<2>(), Index<2>()) : function(Index<2>(), Index<1>());
  } else {
    unit.blocks == 2 ? function(Index<1>(), Index<2>()) : function(Index<1>(), Index<1>());
  }
}

// Calls function with each pair of slivers and blocks of the tile.
template <typename Function>
[[gnu::always_inline]] inline void each_unit(
    const PackedMatrix& weight, const LinearTile& tile, const Function& function
) {
  Unit unit = {};
  for (int sliver = 0; sliver < tile.sliver_count; sliver += 2) {
    unit.sliver = sliver;
    unit.slivers = smaller(2, tile.sliver_count - sliver);
    for (int s = 0; s < unit.slivers; ++s) {
      unit.x[s] = tile_sliver(weight, tile.slivers, tile.prepared, tile.first_sliver + sliver + s);
    }
    for (unit.block = 0; unit.block < tile.block_count; unit.block += 2) {
      unit.blocks = smaller(2, tile.block_count - unit.block);
      function(unit);
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
