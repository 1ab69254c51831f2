// SPDX-License-Identifier: Apache-2.0
#pragma once

// Up to 16 rows of x times blocks of the weight: one pass over the weight, four blocks at a time.

#include "saker/kernels/amx/linear_weights.h"
#include "saker/kernels/amx/results.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kTiledBlocks = 4;
inline constexpr int kAhead = 1;  // Chunks.

// sums[b] += one step of block b, for kBlocks blocks from kFirst on; at(b) is where its weights
// lie.
template <int kFirst, int kBlocks, typename Weights>
[[gnu::always_inline]] inline void add_step(const TileSliver& x, int step, const Weights& at) {
  tile_load<kRight>(x.step(step), x.stride);
  unroll<kBlocks>([&](auto i) {
    constexpr int kBlock = kFirst + i.kValue;
    constexpr int kWeight = kLeft + kBlock % 2;
    tile_load<kWeight>(at(kBlock), kTileStride);
    tile_add_products<kBlock, kWeight, kRight>();
  });
}

// bf16 weights, which lie ready.
template <int kBlocks>
void multiply_dense_blocks(const PackedMatrix& weight, const TileSliver& x, int block) {
  const std::byte* first = weight.block(block);
  const std::size_t block_bytes = weight.block_bytes();
  for (int step = 0; step < tile_steps(weight); ++step) {
    add_step<0, kBlocks>(x, step, [&](int b) {
      return first + b * block_bytes + step * kTileBytes;
    });
  }
}

// Codes. While the tiles work on some blocks of a chunk, the others are unpacked: what was just
// written to memory is slow to load as a tile.
template <typename Chunk, int kBlocks>
void multiply_coded_blocks(const PackedMatrix& weight, const TileSliver& x, int block) {
  constexpr int kHalf = (kBlocks + 1) / 2;
  alignas(64) WeightTile unpacked[kBlocks][kChunkSteps];
  const std::byte* first = weight.block(block);
  const std::size_t block_bytes = weight.block_bytes();
  const std::size_t chunk_bytes = weight.chunk_bytes();
  const std::size_t pair_bytes = weight.chunk_pair_bytes();
  const int chunks = weight.chunks();
  const auto unpack = [&](int chunk, int b) {
    const std::byte* at = first + b * block_bytes + chunk * chunk_bytes;
    // Behind the last chunk, the first of the blocks that follow all of these.
    const std::size_t skipped = chunk + kAhead < chunks ? 0 : (kBlocks - 1) * block_bytes;
    unpack_chunk<Chunk>(at, at + kAhead * chunk_bytes + skipped, pair_bytes, unpacked[b]);
  };
  const auto multiply = [&](int chunk, auto from, auto count) {
    for (int step = 0; step < kChunkSteps; ++step) {
      add_step<from.kValue, count.kValue>(x, chunk * kChunkSteps + step, [&](int b) {
        return unpacked[b][step];
      });
    }
  };
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (int b = 0; b < kHalf; ++b) {
      unpack(chunk, b);
    }
    if (chunk > 0) {
      multiply(chunk - 1, Index<kHalf>(), Index<kBlocks - kHalf>());
    }
    for (int b = kHalf; b < kBlocks; ++b) {
      unpack(chunk, b);
    }
    multiply(chunk, Index<0>(), Index<kHalf>());
  }
  multiply(chunks - 1, Index<kHalf>(), Index<kBlocks - kHalf>());
}

template <int kBlocks>
void multiply_blocks_tiled(
    const PackedMatrix& weight, const LinearTile& tile, const TileSliver& x, int block
) {
  unroll<kBlocks>([](auto b) { tile_clear<b.kValue>(); });
  if (weight.has_groups()) {
    with_chunk(weight, [&](auto chunk) {
      multiply_coded_blocks<decltype(chunk), kBlocks>(weight, x, block);
    });
  } else {
    multiply_dense_blocks<kBlocks>(weight, x, block);
  }
  alignas(64) SumTile sums[kBlocks];
  unroll<kBlocks>([&](auto b) { tile_store<b.kValue>(sums[b.kValue], x.stride); });
  store_rows(weight, tile, {0, tile.slivers.rows, block, kBlocks}, sums);
}

inline void multiply_few_tiled(const PackedMatrix& weight, const LinearTile& tile) {
  const TileSliver x = tile_sliver(weight, tile.slivers, tile.prepared, 0);
  const Tiles registers(kTileHeight, tile.slivers.rows);
  const int end = tile.first_block + tile.block_count;
  int block = tile.first_block;
  for (; block + kTiledBlocks <= end; block += kTiledBlocks) {
    multiply_blocks_tiled<kTiledBlocks>(weight, tile, x, block);
  }
  for (; block < end; ++block) {
    multiply_blocks_tiled<1>(weight, tile, x, block);
  }
}

}  // namespace saker::kernels::SAKER_ISA
