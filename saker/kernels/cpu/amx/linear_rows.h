// SPDX-License-Identifier: Apache-2.0
#pragma once

// Up to 16 rows of x times NR blocks of the weight: one pass over the weight, four blocks at a
// time.

#include "saker/kernels/cpu/amx/linear_weights.h"
#include "saker/kernels/cpu/amx/results.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kTiledBlocks = 4;
inline constexpr int kAhead = 1;  // Prefetch distance in chunks.

// sums[b] += one step of block b, for kBlocks blocks from kFirst on. at(b) points to its weights,
// whose rows are row_bytes apart.
template <int kFirst, int kBlocks, typename Weights>
[[gnu::always_inline]] inline void add_step(
    const TileMicroPanel& x, int step, const Weights& at, std::ptrdiff_t row_bytes = kTileStride
) {
  tile_load<kRight>(x.step(step), x.stride);
  unroll<kBlocks>([&](auto i) {
    constexpr int kBlock = kFirst + i.kValue;
    constexpr int kWeight = kLeft + kBlock % 2;
    tile_load<kWeight>(at(kBlock), row_bytes);
    tile_add_products<kBlock, kWeight, kRight>();
  });
}

// bf16 weights that are stored as tiles.
template <int kBlocks>
void multiply_dense_blocks(const PackedMatrix& weight, const TileMicroPanel& x, int block) {
  const std::byte* first = weight.block(block);
  const std::size_t block_bytes = weight.block_bytes();
  for (int step = 0; step < tile_steps(weight); ++step) {
    add_step<0, kBlocks>(x, step, [&](int b) {
      return first + b * block_bytes + step * kTileBytes;
    });
  }
}

// bf16 weights that lie row by row. Sixteen rows at once are too many streams for the hardware
// prefetcher, so the blocks that follow are prefetched, in memory order.
template <int kBlocks>
void multiply_blocks_in_place(const PackedMatrix& weight, const TileMicroPanel& x, int block) {
  const std::byte* blocks[kBlocks];
  const std::byte* next[kBlocks];
  unroll<kBlocks>([&](auto b) {
    blocks[b.kValue] = weight.block(block + b.kValue);
    next[b.kValue] = weight.block(smaller(block + kBlocks + b.kValue, weight.blocks() - 1));
  });
  for (int step = 0; step < tile_steps(weight); ++step) {
    unroll<kBlocks>([&](auto b) { prefetch_l2(next[b.kValue] + step * kTileBytes, kTileBytes); });
    add_step<0, kBlocks>(
        x,
        step,
        [&](int b) { return blocks[b] + step * weight.tile_step_bytes(); },
        weight.tile_row_bytes()
    );
  }
}

// Some of the blocks that are multiplied together.
template <int kFirstBlock, int kBlockCount>
struct BlockRange {
  static constexpr int kFirst = kFirstBlock;
  static constexpr int kCount = kBlockCount;
};

// Codes. While the tiles work on some blocks of a chunk, others are unpacked, because a tile load
// of freshly written memory is slow. Each step of the tiles is paired with some of the rows to
// unpack, since the processor looks no further ahead.
template <typename Chunk, int kBlocks>
void multiply_coded_blocks(const PackedMatrix& weight, const TileMicroPanel& x, int block) {
  constexpr int kHalf = (kBlocks + 1) / 2;
  constexpr int kStepRows = kBlockRows / kChunkSteps;
  using First = BlockRange<0, kHalf>;
  using Second = BlockRange<kHalf, kBlocks - kHalf>;
  alignas(64) WeightTile unpacked[kBlocks][kChunkSteps];
  Unpacking<Chunk> unpackings[kBlocks];
  const std::byte* first = weight.block(block);
  const std::size_t block_bytes = weight.block_bytes();
  const std::size_t chunk_bytes = weight.chunk_bytes();
  const int chunks = weight.chunks();
  const auto start = [&](int chunk, int b) {
    const std::byte* at = first + b * block_bytes + chunk * chunk_bytes;
    // After the last chunk comes the first chunk of the blocks behind all of these.
    const std::size_t skipped = chunk + kAhead < chunks ? 0 : (kBlocks - 1) * block_bytes;
    unpackings[b].start(at, at + kAhead * chunk_bytes + skipped, unpacked[b]);
  };
  const auto multiply_step = [&](auto range, int chunk, int step) {
    add_step<range.kFirst, range.kCount>(x, chunk * kChunkSteps + step, [&](int b) {
      return unpacked[b][step];
    });
  };
  // Unpacks a chunk of one range's blocks while multiplying an earlier chunk of the other's.
  const auto interleave = [&](auto coded, int chunk, auto ready, int ready_chunk) {
    unroll<coded.kCount>([&](auto b) { start(chunk, coded.kFirst + b.kValue); });
    for (int step = 0; step < kChunkSteps; ++step) {
      unroll<coded.kCount>([&](auto b) {
        unpackings[coded.kFirst + b.kValue].unpack_rows(step * kStepRows, kStepRows);
      });
      if (ready_chunk >= 0) {
        multiply_step(ready, ready_chunk, step);
      }
    }
  };
  for (int chunk = 0; chunk < chunks; ++chunk) {
    interleave(First(), chunk, Second(), chunk - 1);
    interleave(Second(), chunk, First(), chunk);
  }
  for (int step = 0; step < kChunkSteps; ++step) {
    multiply_step(Second(), chunks - 1, step);
  }
}

template <int kBlocks>
void multiply_blocks_tiled(
    const PackedMatrix& weight, const LinearTile& tile, const TileMicroPanel& x, int block
) {
  unroll<kBlocks>([](auto b) { tile_clear<b.kValue>(); });
  if (weight.has_groups()) {
    with_chunk(weight, [&](auto chunk) {
      multiply_coded_blocks<decltype(chunk), kBlocks>(weight, x, block);
    });
  } else if (weight.in_place()) {
    multiply_blocks_in_place<kBlocks>(weight, x, block);
  } else {
    multiply_dense_blocks<kBlocks>(weight, x, block);
  }
  alignas(64) SumTile sums[kBlocks];
  unroll<kBlocks>([&](auto b) { tile_store<b.kValue>(sums[b.kValue], x.stride); });
  store_rows(weight, tile, {0, tile.micro_panels.rows, block, kBlocks}, sums);
}

inline void multiply_few_tiled(const PackedMatrix& weight, const LinearTile& tile) {
  const TileMicroPanel x = tile_micro_panel(weight, tile.micro_panels, tile.prepared, 0);
  const Tiles registers(kTileHeight, tile.micro_panels.rows);
  const int end = tile.first_block + tile.block_count;
  int block = tile.first_block;
  for (; weight.in_place() && block + 2 <= end; block += 2) {
    multiply_blocks_tiled<2>(weight, tile, x, block);
  }
  for (; block + kTiledBlocks <= end; block += kTiledBlocks) {
    multiply_blocks_tiled<kTiledBlocks>(weight, tile, x, block);
  }
  for (; block < end; ++block) {
    multiply_blocks_tiled<1>(weight, tile, x, block);
  }
}

}  // namespace saker::kernels::SAKER_ISA
