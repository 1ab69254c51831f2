// SPDX-License-Identifier: Apache-2.0
#pragma once

// The products of attention on AMX tiles: up to 16 rows at a time. A page holds keys as pairs of
// elements and values as pairs of keys, so tiles can load both as weights.

#include "saker/kernels/cpu/amx/tile.h"
#include "saker/kernels/cpu/amx/words.h"
#include "saker/kernels/cpu/attention/pair_products.h"
#include "saker/kernels/cpu/simd/unroll.h"

#include <optional>

namespace saker::kernels::SAKER_ISA {

inline constexpr int kMaxTiles = 4;  // Tiles of sums at a time.

// Prefetch distance in bytes. Tiles are loaded one after the other, and each load waits for all its
// lines.
inline constexpr std::ptrdiff_t kTilesAhead = 4096;

// Prefetches kTilesAhead bytes ahead of the `bytes` bytes from `offset` on, in the block's keys and
// values, which are adjacent. Past their end it goes on in the next block.
[[gnu::always_inline]] inline void prefetch_ahead_of(
    const AttendShape& shape, const Block& block, std::ptrdiff_t offset, std::ptrdiff_t bytes
) {
  const auto end = static_cast<std::ptrdiff_t>(shape.head_bytes);
  const std::ptrdiff_t first = offset + kTilesAhead;
  for (std::ptrdiff_t at = first; at < first + bytes; at += kTileStride) {
    __builtin_prefetch(at < end ? block.keys + at : block.next_keys + (at - end), 0, 3);
  }
}

// Sixteen pairs of the block's keys from pair `first` on; zeros past the last.
struct KeyStep {
  alignas(64) std::uint32_t pairs[kTilePairs][kBlock];

  KeyStep(const std::byte* keys, int first, int count) {
    const std::size_t row = sizeof(pairs[0]);
    __builtin_memset(pairs, 0, sizeof(pairs));
    __builtin_memcpy(pairs, keys + static_cast<std::size_t>(first) * row, count * row);
  }
};

// Sums 0 .. kTiles - 1 += one step of `inputs` times the tiles of weights from `weights` on.
template <int kTiles>
[[gnu::always_inline]] inline void add_tiles(
    const void* inputs,
    std::ptrdiff_t input_stride,
    const std::byte* weights,
    std::ptrdiff_t next,
    std::ptrdiff_t stride
) {
  tile_load<kLeft>(inputs, input_stride);
  unroll<kTiles>([&](auto i) {
    constexpr int kWeight = kRight + i.kValue % 2;
    tile_load<kWeight>(weights + i.kValue * next, stride);
    tile_add_products<i.kValue, kLeft, kWeight>();
  });
}

struct TileProducts : PairOperands {
  // The tile registers. Configuring them takes as long as a few products, so it happens only when
  // the number of rows changes.
  class Registers {
   public:
    void set_rows(int rows) {
      if (rows != rows_) {
        tiles_.emplace(rows);
        rows_ = rows;
      }
    }

   private:
    std::optional<Tiles> tiles_;
    int rows_ = 0;
  };

  static constexpr int kGroupRows = kTileHeight;

  [[gnu::always_inline]] static void store_weights(
      const Block& block, int row, const F32x16 (&weights)[4]
  ) {
    std::uint32_t* to = block.weights + row * kBlock / 2;
    store_u32(to, bf16_pairs(weights[0], weights[1]));
    store_u32(to + kVector, bf16_pairs(weights[2], weights[3]));
  }

  static void score(const AttendShape& shape, const Block& block, const RowGroup& group) {
    constexpr std::ptrdiff_t kPairBytes = kBlock * sizeof(std::uint32_t);
    const int words = query_words<TileProducts>(shape);
    const float* query = block.queries + group.first * words;
    const std::ptrdiff_t stride = words * static_cast<std::ptrdiff_t>(sizeof(float));
    const int pairs = (shape.head_dim + 1) / 2;
    unroll<kMaxTiles>([](auto i) { tile_clear<i.kValue>(); });
    int pair = 0;
    for (; pair + kTilePairs <= pairs; pair += kTilePairs) {
      if (is_first_to_read(group)) {
        prefetch_ahead_of(shape, block, pair * kPairBytes, kMaxTiles * kTileBytes);
      }
      add_tiles<kMaxTiles>(
          query + pair, stride, block.keys + pair * kPairBytes, kTileStride, kPairBytes
      );
    }
    if (pair < pairs) {
      const KeyStep last(block.keys, pair, pairs - pair);
      const auto* keys = reinterpret_cast<const std::byte*>(last.pairs);
      add_tiles<kMaxTiles>(query + pair, stride, keys, kTileStride, kPairBytes);
    }
    unroll<kMaxTiles>([&](auto i) {
      tile_store<i.kValue>(block.scores + i.kValue * kVector, kBlock * sizeof(float));
    });
  }

  static void add_values(
      const AttendShape& shape, const Block& block, const RowGroup& group, const State& state
  ) {
    float* sums = state.values + group.first * state.stride;
    int chunk = 0;
    for (; chunk + kMaxTiles <= shape.value_chunks; chunk += kMaxTiles) {
      add_chunks<kMaxTiles>(shape, block, group, chunk, sums);
    }
    for (; chunk < shape.value_chunks; ++chunk) {
      add_chunks<1>(shape, block, group, chunk, sums);
    }
  }

 private:
  // The tile's other rows find the block in a cache.
  static bool is_first_to_read(const RowGroup& group) { return group.first == 0; }

  // Goes chunk by chunk, the order in memory.
  template <int kChunks>
  static void add_chunks(
      const AttendShape& shape, const Block& block, const RowGroup& group, int chunk, float* sums
  ) {
    constexpr std::ptrdiff_t kChunkBytes = kBlock * kVector * 2;
    static_assert(kChunkBytes == 2 * kTileBytes);
    const std::ptrdiff_t sum_stride =
        shape.value_chunks * kVector * static_cast<std::ptrdiff_t>(sizeof(float));
    unroll<kChunks>([&](auto c) {
      tile_load<c.kValue>(sums + (chunk + c.kValue) * kVector, sum_stride);
    });
    tile_load<kLeft>(block.weights, kBlock * 2);
    tile_load<kLeft + 1>(block.weights + kTilePairs, kBlock * 2);
    unroll<kChunks>([&](auto c) {
      const std::ptrdiff_t at = (chunk + c.kValue) * kChunkBytes;
      if (is_first_to_read(group)) {
        prefetch_ahead_of(
            shape, block, static_cast<std::ptrdiff_t>(shape.key_bytes) + at, kChunkBytes
        );
      }
      tile_load<kRight>(block.values + at, kTileStride);
      tile_add_products<c.kValue, kLeft, kRight>();
      tile_load<kRight + 1>(block.values + at + kTileBytes, kTileStride);
      tile_add_products<c.kValue, kLeft + 1, kRight + 1>();
    });
    unroll<kChunks>([&](auto c) {
      tile_store<c.kValue>(sums + (chunk + c.kValue) * kVector, sum_stride);
    });
  }
};

}  // namespace saker::kernels::SAKER_ISA
