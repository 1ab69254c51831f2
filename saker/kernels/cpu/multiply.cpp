// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/multiply.h"

#include "saker/kernels/cpu/aligned_bytes.h"
#include "saker/kernels/cpu/thread_pool.h"

#include <algorithm>

namespace saker::kernels {
namespace {

// Tiles of one product that each thread gets about: enough to even out a thread that lost its core
// for a while.
constexpr int kTilesPerThread = 8;

constexpr int divide_up(int a, int b) {
  return (a + b - 1) / b;
}

// Blocks of 16 columns in a tile: as many as fit, fewer when threads would have too few tiles.
int blocks_in_tile(const LinearBodies& bodies, int blocks, int row_tiles) {
  const int step = row_tiles == 0 ? 4 : bodies.block_step;
  const int wanted = kTilesPerThread * thread_pool().size();
  const int even = blocks * std::max(row_tiles, 1) / wanted / step * step;
  return std::clamp(even, step, kTileBlocks);
}

void multiply_one(const LinearBodies& bodies, const PackedMatrix& weight, LinearTile whole) {
  const int blocks = weight.blocks();
  const int step = blocks_in_tile(bodies, blocks, 0);
  thread_pool().run(divide_up(blocks, step), [&](int index) {
    LinearTile tile = whole;
    tile.row_count = 1;
    tile.first_block = index * step;
    tile.block_count = std::min(step, blocks - tile.first_block);
    bodies.multiply(weight, tile);
  });
}

void multiply_many(const LinearBodies& bodies, const PackedMatrix& weight, LinearTile whole) {
  const int blocks = weight.blocks();
  const int row_tiles = divide_up(whole.total_rows, kTileRows);
  const int step = blocks_in_tile(bodies, blocks, row_tiles);
  const int block_tiles = divide_up(blocks, step);
  thread_pool().run(row_tiles * block_tiles, [&](int index) {
    LinearTile tile = whole;
    tile.first_row = index / block_tiles * kTileRows;
    tile.row_count = std::min(kTileRows, whole.total_rows - tile.first_row);
    tile.first_block = index % block_tiles * step;
    tile.block_count = std::min(step, blocks - tile.first_block);
    bodies.multiply(weight, tile);
  });
}

}  // namespace

void multiply_rows(
    const LinearBodies& bodies,
    const PackedMatrix& weight,
    const InputRows& x,
    const float* bias,
    float* out
) {
  if (x.count == 0) {
    return;
  }
  // Kept by the stream's thread, so that passes do not fetch fresh pages each time.
  thread_local AlignedBytes prepared;
  prepared.reserve(bodies.prepared_row_bytes(weight) * static_cast<std::size_t>(x.count));
  std::byte* to = prepared.data();
  const int slivers = divide_up(x.count, bodies.sliver_rows);
  if (slivers <= 2) {
    for (int sliver = 0; sliver < slivers; ++sliver) {
      bodies.prepare(weight, x, sliver, to);
    }
  } else {
    thread_pool().run(slivers, [&](int sliver) { bodies.prepare(weight, x, sliver, to); });
  }
  LinearTile whole;
  whole.prepared = to;
  whole.total_rows = x.count;
  whole.bias = bias;
  whole.out = out;
  if (x.count == 1) {
    multiply_one(bodies, weight, whole);
  } else {
    multiply_many(bodies, weight, whole);
  }
}

}  // namespace saker::kernels
