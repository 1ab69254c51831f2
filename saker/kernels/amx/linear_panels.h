// SPDX-License-Identifier: Apache-2.0
#pragma once

// Many rows of x times blocks of the weight: two slivers by two blocks share what is loaded. A
// panel of some steps of all the tile's blocks stays in the first-level cache while the slivers
// pass by; sums go through memory between panels, which changes no bit.

#include "saker/kernels/amx/linear_inputs.h"
#include "saker/kernels/amx/panel.h"
#include "saker/kernels/amx/units.h"

namespace saker::kernels::SAKER_ISA {

// sums[s][b] in registers 2 s + b += steps [first, first + count) of the panel.
template <int kSlivers, int kBlocks>
[[gnu::always_inline]] inline void add_unit_steps(
    const Unit& unit, const Panel& panel, int first, int count, const PanelMemory& memory
) {
  for (int step = first; step < first + count; ++step) {
    unroll<kSlivers>([&](auto s) {
      tile_load<kFirstInput + s.kValue>(
          unit.x[s.kValue].step(panel.first_step + step), kTileStride
      );
    });
    unroll<kBlocks>([&](auto b) {
      tile_load<kFirstWeight + b.kValue>(memory.panel[unit.block + b.kValue][step], kTileStride);
      unroll<kSlivers>([&](auto s) {
        tile_add_products<2 * s.kValue + b.kValue, kFirstInput + s.kValue, kFirstWeight + b.kValue>(
        );
      });
    });
  }
}

template <int kSlivers, int kBlocks>
void multiply_unit(const Unit& unit, const Panel& panel, PanelMemory& memory) {
  constexpr std::ptrdiff_t kStride = sizeof(memory.sums[0]);
  const auto place = [&](int s, int b) {
    return memory.sums[(unit.sliver + s) * kTileHeight][unit.block + b];
  };
  each_sum<kSlivers, kBlocks>([&](auto s, auto b) {
    tile_load<2 * s.kValue + b.kValue>(place(s.kValue, b.kValue), kStride);
  });
  add_unit_steps<kSlivers, kBlocks>(unit, panel, 0, panel.steps, memory);
  each_sum<kSlivers, kBlocks>([&](auto s, auto b) {
    tile_store<2 * s.kValue + b.kValue>(place(s.kValue, b.kValue), kStride);
  });
}

// Starts the products of one group; store_group waits for them.
template <int kSlivers, int kBlocks>
[[gnu::always_inline]] inline void multiply_group(
    const PackedMatrix& weight, const Unit& unit, const Panel& panel, const PanelMemory& memory
) {
  const int steps = weight.group / kTileColumns;
  each_sum<kSlivers, kBlocks>([&](auto s, auto b) { tile_clear<2 * s.kValue + b.kValue>(); });
  add_unit_steps<kSlivers, kBlocks>(unit, panel, unit.group * steps, steps, memory);
}

template <int kSlivers, int kBlocks>
[[gnu::always_inline]] inline void store_group(UnitProducts& products) {
  each_sum<kSlivers, kBlocks>([&](auto s, auto b) {
    tile_store<2 * s.kValue + b.kValue>(products[s.kValue][b.kValue], kTileStride);
  });
}

inline void add_unit_products(
    const PackedMatrix& weight,
    const Unit& unit,
    const Panel& panel,
    const UnitProducts& products,
    PanelMemory& memory
) {
  const int group = panel.first_step * kTileColumns / weight.group + unit.group;
  for (int b = 0; b < unit.blocks; ++b) {
    const F32x16 scale = load(memory.scales[unit.block + b][unit.group]);
    const F32x16 factor = load(memory.factors[unit.block + b][unit.group]);
    for (int s = 0; s < unit.slivers; ++s) {
      const int rows = unit.x[s].rows;
      const float* sums = unit.x[s].sums + group * rows;
      auto* y = memory.sums + (unit.sliver + s) * kTileHeight;
#pragma GCC unroll 4
      for (int row = 0; row < rows; ++row) {
        float* to = y[row][unit.block + b];
        const F32x16 product = load(products[s][b][row]);
        store(to, add_group(load(to), product, broadcast(sums[row]), scale, factor));
      }
    }
  }
}

// Multiplies a panel of bf16 weights with all slivers of the tile.
inline void multiply_dense_panel(
    const PackedMatrix& weight, const LinearTile& tile, const Panel& panel, PanelMemory& memory
) {
  each_unit(weight, tile, [&](const Unit& unit) {
    with_counts(unit, [&](auto s, auto b) {
      multiply_unit<s.kValue, b.kValue>(unit, panel, memory);
    });
  });
}

// The same for codes. The products of a group are added to the sums while the tiles work on the
// next one.
inline void multiply_coded_panel(
    const PackedMatrix& weight, const LinearTile& tile, const Panel& panel, PanelMemory& memory
) {
  const int groups = panel.steps * kTileColumns / weight.group;
  Unit before = {};
  int turn = 0;  // Groups multiplied.
  const auto add_before = [&] {
    add_unit_products(weight, before, panel, memory.products[(turn + 1) % 2], memory);
  };
  each_unit(weight, tile, [&](Unit unit) {
    for (unit.group = 0; unit.group < groups; ++unit.group) {
      with_counts(unit, [&](auto s, auto b) {
        multiply_group<s.kValue, b.kValue>(weight, unit, panel, memory);
      });
      if (turn > 0) {
        add_before();
      }
      // Last: memory is written in order, and these wait for the tiles.
      with_counts(unit, [&](auto s, auto b) {
        store_group<s.kValue, b.kValue>(memory.products[turn % 2]);
      });
      before = unit;
      ++turn;
    }
  });
  add_before();
}

template <typename Format>
void multiply_many_tiled(const PackedMatrix& weight, const LinearTile& tile) {
  PanelMemory memory;
  const std::size_t slivers = static_cast<std::size_t>(tile.sliver_count) * kTileHeight;
  __builtin_memset(memory.sums, 0, slivers * sizeof(memory.sums[0]));
  {
    const Tiles registers(tile.slivers.first_row(1));
    const int steps = tile_steps(weight.columns);
    for (int step = 0; step < steps; step += kPanelSteps) {
      const Panel panel = {step, smaller(kPanelSteps, steps - step)};
      fill_panel<Format>(weight, tile, panel, memory);
      if constexpr (kGrouped<Format>) {
        multiply_coded_panel(weight, tile, panel, memory);
      } else {
        multiply_dense_panel(weight, tile, panel, memory);
      }
    }
  }
  for (int sliver = 0; sliver < tile.sliver_count; ++sliver) {
    const int first = tile.slivers.first_row(tile.first_sliver + sliver);
    const int end = tile.slivers.first_row(tile.first_sliver + sliver + 1);
    for (int row = first; row < end; ++row) {
      for (int b = 0; b < tile.block_count; ++b) {
        const F32x16 y = load(memory.sums[sliver * kTileHeight + row - first][b]);
        store_result(weight, tile, row, tile.first_block + b, y);
      }
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
