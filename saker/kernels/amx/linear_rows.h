// SPDX-License-Identifier: Apache-2.0
#pragma once

// Up to 16 rows of x times blocks of the weight: one pass over the weight, four blocks at a time.

#include "saker/kernels/amx/linear_inputs.h"
#include "saker/kernels/amx/linear_weights.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kTiledBlocks = 4;

inline constexpr int kMostGroupSteps = 4;  // Groups of 128 columns.

using ProductTile = float[kTileHeight][kBlockRows];
using UnpackedSteps = WeightTile[kMostGroupSteps][kTiledBlocks];

// products[b] += one step of block b, in the registers; at(b) is where its weights lie.
template <int kBlocks, typename Weights>
[[gnu::always_inline]] inline void add_step(const std::byte* inputs, const Weights& at) {
  tile_load<kFirstInput>(inputs, kTileStride);
  unroll<kBlocks>([&](auto b) {
    constexpr int kWeight = kFirstWeight + b.kValue % 2;
    tile_load<kWeight>(at(b.kValue), kTileStride);
    tile_add_products<b.kValue, kFirstInput, kWeight>();
  });
}

template <int kBlocks>
[[gnu::always_inline]] inline void clear_products() {
  unroll<kBlocks>([&](auto b) { tile_clear<b.kValue>(); });
}

template <int kBlocks>
[[gnu::always_inline]] inline void store_products(ProductTile (&products)[kTiledBlocks]) {
  unroll<kBlocks>([&](auto b) { tile_store<b.kValue>(products[b.kValue], kTileStride); });
}

// y += the products of one group, which lies at `group` of the first block.
template <typename Format, int kBlocks>
[[gnu::always_inline]] inline void add_group_products(
    const GroupLayout& layout,
    const std::byte* group,
    const float* sums,
    int rows,
    const ProductTile (&products)[kTiledBlocks],
    ProductTile (&y)[kTiledBlocks]
) {
  unroll<kBlocks>([&](auto b) {
    const GroupFactors of = group_factors<Format>(layout, group + b.kValue * layout.block_bytes);
    for (int row = 0; row < rows; ++row) {
      float* to = y[b.kValue][row];
      const F32x16 product = load(products[b.kValue][row]);
      store(to, add_group(load(to), product, broadcast(sums[row]), of.scale, of.factor));
    }
  });
}

// y = x times blocks of bf16 weights.
template <int kBlocks>
void multiply_dense_blocks(
    const PackedMatrix& weight, const TileSliver& x, int block, ProductTile (&y)[kTiledBlocks]
) {
  const int whole = weight.columns / kTileColumns;
  clear_products<kBlocks>();
  for (int step = 0; step < whole; ++step) {
    add_step<kBlocks>(x.step(step), [&](int b) { return dense_step(weight, block + b, step); });
  }
  if (whole < tile_steps(weight.columns)) {
    alignas(64) WeightTile last[kTiledBlocks];
    for (int b = 0; b < kBlocks; ++b) {
      copy_last_step(weight, block + b, last[b]);
    }
    add_step<kBlocks>(x.step(whole), [&](int b) { return last[b]; });
  }
  store_products<kBlocks>(y);
}

// y = x times blocks of codes. While the tiles work on a group, the next one is unpacked and the
// products of the one before are added: what was just written to memory is slow to load as a tile.
template <typename Format, int kBlocks>
void multiply_coded_blocks(
    const PackedMatrix& weight, const TileSliver& x, int block, ProductTile (&y)[kTiledBlocks]
) {
  alignas(64) UnpackedSteps unpacked[2];
  alignas(64) ProductTile products[2][kTiledBlocks];
  const GroupLayout layout(weight);
  const int steps = layout.steps;
  const int groups = weight.groups();
  const std::byte* first = layout.group(weight, block, 0);
  const auto unpack = [&](int group) {
    const std::byte* words = first + static_cast<std::size_t>(group) * layout.group_bytes;
    unroll<kBlocks>([&](auto b) {
      for (int step = 0; step < steps; ++step) {
        unpack_codes<Format>(
            words + b.kValue * layout.block_bytes + step * kStepCodes<Format>,
            unpacked[group % 2][step][b.kValue]
        );
      }
    });
  };
  const auto add = [&](int group) {
    const std::byte* at = first + static_cast<std::size_t>(group) * layout.group_bytes;
    const float* sums = x.sums + group * x.rows;
    add_group_products<Format, kBlocks>(layout, at, sums, x.rows, products[group % 2], y);
  };
  for (int b = 0; b < kBlocks; ++b) {
    __builtin_memset(y[b], 0, static_cast<std::size_t>(x.rows) * sizeof(y[b][0]));
  }
  unpack(0);
  for (int group = 0; group < groups; ++group) {
    clear_products<kBlocks>();
    for (int step = 0; step < steps; ++step) {
      add_step<kBlocks>(x.step(group * steps + step), [&](int b) {
        return unpacked[group % 2][step][b];
      });
    }
    if (group > 0) {
      add(group - 1);
    }
    if (group + 1 < groups) {
      unpack(group + 1);
    }
    // Last: memory is written in order, and these wait for the tiles.
    store_products<kBlocks>(products[group % 2]);
  }
  add(groups - 1);
}

template <typename Format, int kBlocks>
void multiply_blocks_tiled(
    const PackedMatrix& weight, const LinearTile& tile, const TileSliver& x, int block
) {
  alignas(64) ProductTile y[kTiledBlocks];
  if constexpr (kGrouped<Format>) {
    multiply_coded_blocks<Format, kBlocks>(weight, x, block, y);
  } else {
    multiply_dense_blocks<kBlocks>(weight, x, block, y);
  }
  for (int b = 0; b < kBlocks; ++b) {
    for (int row = 0; row < x.rows; ++row) {
      store_result(weight, tile, row, block + b, load(y[b][row]));
    }
  }
}

template <typename Format>
void multiply_few_tiled(const PackedMatrix& weight, const LinearTile& tile) {
  const TileSliver x = tile_sliver(weight, tile.slivers, tile.prepared, 0);
  const Tiles registers(x.rows);
  const int end = tile.first_block + tile.block_count;
  int block = tile.first_block;
  for (; block + kTiledBlocks <= end; block += kTiledBlocks) {
    multiply_blocks_tiled<Format, kTiledBlocks>(weight, tile, x, block);
  }
  for (; block < end; ++block) {
    multiply_blocks_tiled<Format, 1>(weight, tile, x, block);
  }
}

}  // namespace saker::kernels::SAKER_ISA
