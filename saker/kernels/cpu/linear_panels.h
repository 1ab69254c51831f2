// SPDX-License-Identifier: Apache-2.0
#pragma once

// Many rows of x times blocks of the weight: up to kPanelColumns columns of a few blocks are
// unpacked into a panel that stays in the first-level cache, and slivers of rows are multiplied
// with it; sums go through memory between panels, which changes no bit.

#include "saker/kernels/cpu/linear_unpack.h"

namespace saker::kernels::SAKER_ISA {

// Sums of kRows rows, between registers and memory.
template <int kRows>
[[gnu::always_inline]] inline void load_sums(
    const float (*sums)[kBlockStep][kBlockRows], F32x16 (&acc)[kRows][kBlockStep]
) {
  unroll<kRows>([&](auto row) {
    unroll<kBlockStep>([&](auto b) { acc[row.kValue][b.kValue] = load(sums[row.kValue][b.kValue]); }
    );
  });
}

template <int kRows>
[[gnu::always_inline]] inline void store_sums(
    const F32x16 (&acc)[kRows][kBlockStep], float (*sums)[kBlockStep][kBlockRows]
) {
  unroll<kRows>([&](auto row) {
    unroll<kBlockStep>([&](auto b) { store(sums[row.kValue][b.kValue], acc[row.kValue][b.kValue]); }
    );
  });
}

// sums += panel[first ..][..] * inputs for kRows rows, the chains kept in registers.
template <typename Format, int kRows>
[[gnu::always_inline]] inline void multiply_panel(
    const typename Format::Operand::Input (*panel)[kBlockStep][kBlockRows],
    const typename Format::Operand::Input* inputs,
    int count,
    typename Format::Operand::Sum (&acc)[kRows][kBlockStep]
) {
  using Operand = typename Format::Operand;
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) {
    typename Operand::Weight w[kBlockStep];
    unroll<kBlockStep>([&](auto b) { w[b.kValue] = Operand::load_panel(panel[i][b.kValue]); });
    unroll<kRows>([&](auto row) {
      unroll<kBlockStep>([&](auto b) {
        acc[row.kValue][b.kValue] =
            Operand::step(acc[row.kValue][b.kValue], w[b.kValue], inputs[row.kValue]);
      });
    });
    inputs += kRows;
  }
}

// Adds the products of the panel's group g, summed in acc, to the sums of one sliver. These are the
// compiler's to place: sums in memory, which each group read and wrote, cost prompts a tenth.
template <typename Format, int kRows>
[[gnu::always_inline]] inline void add_group_products(
    const TileMemory<Format>& memory,
    int g,
    const float* numbers,
    const typename Format::Operand::Sum (&acc)[kRows][kBlockStep],
    F32x16 (&y)[kRows][kBlockStep]
) {
  unroll<kBlockStep>([&](auto b) {
    const GroupTerms terms = {load(memory.scales[g][b.kValue]), load(memory.factors[g][b.kValue])};
    unroll<kRows>([&](auto row) {
      F32x16& sum = y[row.kValue][b.kValue];
      sum = add_group<Format, kRows>(sum, acc[row.kValue][b.kValue], numbers, row.kValue, terms);
    });
  });
}

// Adds the panel's products to the sums of one sliver.
template <typename Format, int kRows>
void multiply_sliver(
    const PackedMatrix& weight,
    const PanelRange& range,
    const TileMemory<Format>& memory,
    const Sliver<typename Format::Operand::Input>& x,
    float (*sums)[kBlockStep][kBlockRows]
) {
  constexpr int kPerOperand = Format::Operand::kPerOperand;
  typename Format::Operand::Sum acc[kRows][kBlockStep];
  const auto* inputs = x.inputs + range.first / kPerOperand * kRows;
  if constexpr (!kGrouped<Format>) {
    load_sums<kRows>(sums, acc);
    multiply_panel<Format, kRows>(memory.panel, inputs, inputs_per_row<Format>(range.count), acc);
    store_sums<kRows>(acc, sums);
  } else {
    const int group_inputs = weight.group / kPerOperand;
    const int first_group = range.first / weight.group;
    F32x16 y[kRows][kBlockStep];
    load_sums<kRows>(sums, y);
    for (int g = 0; g < range.count / weight.group; ++g) {
      clear(acc);
      multiply_panel<Format, kRows>(
          memory.panel + g * group_inputs, inputs + g * group_inputs * kRows, group_inputs, acc
      );
      const float* numbers = x.numbers + (first_group + g) * kGroupNumbers<Format> * kRows;
      add_group_products<Format, kRows>(memory, g, numbers, acc, y);
    }
    store_sums<kRows>(y, sums);
  }
}

template <typename Format, int kRows = kSliverRows>
void multiply_sliver_rows(
    const PackedMatrix& weight,
    const PanelRange& range,
    const TileMemory<Format>& memory,
    const Sliver<typename Format::Operand::Input>& x,
    float (*sums)[kBlockStep][kBlockRows]
) {
  // Two slivers or more hold at least half of the most each.
  if constexpr (kRows >= kSliverRows / 2) {
    if (x.rows == kRows) {
      multiply_sliver<Format, kRows>(weight, range, memory, x, sums);
    } else {
      multiply_sliver_rows<Format, kRows - 1>(weight, range, memory, x, sums);
    }
  }
}

// The panel of columns k and on of blocks from `block` up to `end`.
[[gnu::always_inline]] inline PanelRange panel_at(
    const PackedMatrix& weight, int k, int block, int end
) {
  return {block, smaller(kBlockStep, end - block), k, smaller(kPanelColumns, weight.columns - k)};
}

// What is unpacked next; after a tile's last panel, the first one of the blocks behind the tile,
// which its thread mostly takes next.
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

template <typename Format>
void multiply_many(const PackedMatrix& weight, const LinearTile& tile) {
  TileMemory<Format> memory;
  const int end = tile.first_block + tile.block_count;
  const int first_row = tile.slivers.first_row(tile.first_sliver);
  const int end_sliver = tile.first_sliver + tile.sliver_count;
  const int row_count = tile.slivers.first_row(end_sliver) - first_row;
  for (int block = tile.first_block; block < end; block += kBlockStep) {
    auto* sums = memory.sums[(block - tile.first_block) / kBlockStep];
    __builtin_memset(sums, 0, static_cast<std::size_t>(row_count) * sizeof(*sums));
  }
  if (tile.block_count % kBlockStep != 0) {
    __builtin_memset(memory.panel, 0, sizeof(memory.panel));
    __builtin_memset(memory.scales, 0, sizeof(memory.scales));
    __builtin_memset(memory.factors, 0, sizeof(memory.factors));
  }
  for (int k = 0; k < weight.columns; k += kPanelColumns) {
    for (int block = tile.first_block; block < end; block += kBlockStep) {
      const PanelRange range = panel_at(weight, k, block, end);
      const PanelRange next = panel_after(weight, tile, range);
      unpack_panel<Format>(weight, range, memory);
      auto* sums = memory.sums[(block - tile.first_block) / kBlockStep];
      for (int sliver = tile.first_sliver; sliver < end_sliver; ++sliver) {
        ask_for_panel<Format>(weight, next, sliver - tile.first_sliver, tile.sliver_count);
        const auto x = sliver_at<Format>(weight, tile, sliver);
        const int row = tile.slivers.first_row(sliver) - first_row;
        multiply_sliver_rows<Format>(weight, range, memory, x, sums + row);
      }
    }
  }
  for (int row = 0; row < row_count; ++row) {
    for (int b = 0; b < tile.block_count; ++b) {
      const F32x16 y = load(memory.sums[b / kBlockStep][row][b % kBlockStep]);
      store_result(weight, tile, first_row + row, tile.first_block + b, y);
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
