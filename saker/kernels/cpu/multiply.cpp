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
int blocks_in_tile(int blocks, int row_tiles, int step) {
  const int wanted = kTilesPerThread * thread_pool().size();
  return std::clamp(blocks * row_tiles / wanted / step * step, step, kTileBlocks);
}

void multiply_tiles(const LinearBodies& bodies, const PackedMatrix& weight, LinearTile whole) {
  const Slivers& slivers = whole.slivers;
  const int blocks = weight.blocks();
  const int row_tiles = divide_up(slivers.count, kTileSlivers);
  const int row_step = divide_up(slivers.count, row_tiles);
  const int step = blocks_in_tile(blocks, row_tiles, slivers.count == 1 ? 4 : bodies.block_step);
  const int block_tiles = divide_up(blocks, step);
  thread_pool().run(row_tiles * block_tiles, [&](int index) {
    LinearTile tile = whole;
    tile.first_sliver = index / block_tiles * row_step;
    tile.sliver_count = std::min(row_step, slivers.count - tile.first_sliver);
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
  const Slivers slivers = {x.count, divide_up(x.count, bodies.sliver_rows(weight))};
  const auto prepare = [&](int sliver) { bodies.prepare(weight, x, slivers, sliver, to); };
  if (slivers.count == 1) {
    prepare(0);
  } else {
    thread_pool().run(slivers.count, prepare);
  }
  LinearTile whole;
  whole.prepared = to;
  whole.slivers = slivers;
  whole.bias = bias;
  whole.out = out;
  multiply_tiles(bodies, weight, whole);
}

}  // namespace saker::kernels
