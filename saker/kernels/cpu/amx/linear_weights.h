// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights as tiles: one step of a block is sixteen rows of 32 bf16. Weights in bf16 are stored like
// that. Small floats are unpacked chunk by chunk, see code_chunks.h.

#include "saker/kernels/cpu/amx/code_chunks.h"
#include "saker/kernels/cpu/amx/linear_inputs.h"

namespace saker::kernels::SAKER_ISA {

using WeightTile = std::byte[kTileBytes];

// Unpacks the sixteen rows of a chunk to its four consecutive tiles, and prefetches the chunk
// `next` meanwhile.
template <typename Chunk>
class Unpacking {
 public:
  [[gnu::always_inline]] void start(
      const std::byte* chunk, const std::byte* next, WeightTile* tiles
  ) {
    constexpr std::size_t kCodes = kBlockRows * Chunk::kCodeBytes;
    chunk_ = chunk;
    next_ = next;
    tiles_ = tiles;
    prefetch_l2(next + kCodes, kTerms * Chunk::kTermBytes);
    for (int i = 0; i < kTerms; i += kLanes) {
      store(terms_ + i, Chunk::load_terms(chunk + kCodes + i * Chunk::kTermBytes));
    }
  }

  [[gnu::always_inline]] void unpack_rows(int first, int count) {
    for (int row = first; row < first + count; ++row) {
      prefetch_l2(next_ + row * Chunk::kCodeBytes, Chunk::kCodeBytes);
      Chunk::unpack_row(
          chunk_ + row * Chunk::kCodeBytes,
          terms_ + row * Chunk::kTerms,
          tiles_[0] + row * kTileStride
      );
    }
  }

 private:
  static constexpr int kTerms = kBlockRows * Chunk::kTerms;

  const std::byte* chunk_;
  const std::byte* next_;
  WeightTile* tiles_;
  alignas(64) float terms_[kTerms];
};

// Calls function with the chunk type of a weight of small floats.
template <typename Function>
void with_chunk(const PackedMatrix& weight, const Function& function) {
  if (weight.kind == PackedKind::kE4m3) {
    function(SmallByteChunk());
  } else if (weight.group == 16) {
    function(SmallFloatChunk<8>());
  } else {
    function(SmallFloatChunk<4>());
  }
}

}  // namespace saker::kernels::SAKER_ISA
