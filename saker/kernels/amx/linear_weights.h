// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights as tiles: one step of a block is sixteen rows of 32 bf16. bf16 weights lie like that;
// codes are unpacked, chunk by chunk, to scale * code + bias, rounded to float32 and then to bf16.

#include "saker/kernels/amx/linear_inputs.h"

namespace saker::kernels::SAKER_ISA {

using WeightTile = std::byte[kTileBytes];

inline constexpr int kChunkSteps = kChunkColumns / kStepColumns;

struct GroupFactors {
  F32x16 scale;
  F32x16 bias;
};

// Of a pair of bias and scale, in all lanes.
template <ScaleKind kKind>
[[gnu::always_inline]] inline GroupFactors group_factors(const std::byte* pair) {
  if constexpr (kKind == ScaleKind::kBFloat16) {
    std::uint32_t both;
    __builtin_memcpy(&both, pair, sizeof(both));
    return {odd_bf16(broadcast_u32(both)), even_bf16(broadcast_u32(both))};
  } else if constexpr (kKind == ScaleKind::kFloat16) {
    return {broadcast_f16(pair + 2), broadcast_f16(pair)};
  } else {
    float both[2];
    __builtin_memcpy(both, pair, sizeof(both));
    return {broadcast(both[1]), broadcast(both[0])};
  }
}

// Codes of 4 bits: the sixteen weights that a group's codes can mean are worked out, and looked up.
template <ScaleKind kKind, int kGroups>
struct NibbleChunk {
  static constexpr int kCodeBytes = kChunkColumns / 2;  // Of a row.

  [[gnu::always_inline]] static void unpack_row(
      const std::byte* codes, const std::byte* pairs, std::byte* to
  ) {
    const U32x16 words = load_u32(reinterpret_cast<const std::uint32_t*>(codes));
    U32x16 tables[kChunkSteps];
    if constexpr (kGroups == 1) {
      const F32x16 weights = meanings(pairs, 0);
      tables[0] = tables[1] = tables[2] = tables[3] = round_to_bf16(weights, weights);
    } else {
      unroll<kGroups / 2>([&](auto pair) {
        constexpr int kFirst = 2 * pair.kValue;
        constexpr int kSteps = kChunkSteps / kGroups;  // Of a group.
        const U32x16 both = round_to_bf16(meanings(pairs, kFirst), meanings(pairs, kFirst + 1));
        unroll<kSteps>([&](auto i) {
          tables[kFirst * kSteps + i.kValue] = repeat_half<0>(both);
          tables[(kFirst + 1) * kSteps + i.kValue] = repeat_half<1>(both);
        });
      });
    }
    unroll<kChunkSteps>([&](auto step) {
      store_u32(
          reinterpret_cast<std::uint32_t*>(to + step.kValue * kTileBytes),
          look_up_words(tables[step.kValue], shift_right_words<4 * step.kValue>(words))
      );
    });
  }

 private:
  [[gnu::always_inline]] static F32x16 meanings(const std::byte* pairs, int group) {
    alignas(64
    ) static constexpr float kCodes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const GroupFactors of = group_factors<kKind>(pairs + group * 2 * scale_bytes(kKind));
    return fma(of.scale, load(kCodes), of.bias);
  }
};

// Codes of 8 bits.
template <ScaleKind kKind, int kGroups>
struct ByteChunk {
  static constexpr int kCodeBytes = kChunkColumns;

  [[gnu::always_inline]] static void unpack_row(
      const std::byte* codes, const std::byte* pairs, std::byte* to
  ) {
    unroll<kGroups>([&](auto group) {
      constexpr int kSteps = kChunkSteps / kGroups;
      const GroupFactors of = group_factors<kKind>(pairs + group.kValue * 2 * scale_bytes(kKind));
      unroll<kSteps>([&](auto i) {
        constexpr int kStep = group.kValue * kSteps + i.kValue;
        const std::byte* from = codes + kStep * kStepColumns;
        const F32x16 first = fma(of.scale, load_bytes(from), of.bias);
        const F32x16 second = fma(of.scale, load_bytes(from + kLanes), of.bias);
        store_u32(
            reinterpret_cast<std::uint32_t*>(to + kStep * kTileBytes), round_to_bf16(first, second)
        );
      });
    });
  }
};

// Asks for memory that will be read soon: into the second cache, since the first one can wait for a
// few lines only.
[[gnu::always_inline]] inline void ask_for(const std::byte* at, std::size_t bytes) {
  for (std::size_t line = 0; line < bytes; line += 64) {
    __builtin_prefetch(at + line, 0, 2);
  }
}

// The sixteen rows of a chunk to its four tiles, which lie one behind the other. Asks for the chunk
// `next` on the way.
template <typename Chunk>
[[gnu::always_inline]] inline void unpack_chunk(
    const std::byte* chunk, const std::byte* next, std::size_t pair_bytes, WeightTile* tiles
) {
  constexpr std::size_t kCodes = kBlockRows * Chunk::kCodeBytes;
  const std::byte* pairs = chunk + kCodes;
  ask_for(next + kCodes, kBlockRows * pair_bytes);
  for (int row = 0; row < kBlockRows; ++row) {
    ask_for(next + row * Chunk::kCodeBytes, Chunk::kCodeBytes);
    Chunk::unpack_row(
        chunk + row * Chunk::kCodeBytes, pairs + row * pair_bytes, tiles[0] + row * kTileStride
    );
  }
}

template <template <ScaleKind, int> typename Chunk, ScaleKind kKind, typename Function>
void with_group_count(const PackedMatrix& weight, const Function& function) {
  switch (weight.group) {
    case 32:
      return function(Chunk<kKind, 4>());
    case 64:
      return function(Chunk<kKind, 2>());
    default:
      return function(Chunk<kKind, 1>());
  }
}

template <template <ScaleKind, int> typename Chunk, typename Function>
void with_scale_kind(const PackedMatrix& weight, const Function& function) {
  switch (weight.scale_kind) {
    case ScaleKind::kBFloat16:
      return with_group_count<Chunk, ScaleKind::kBFloat16>(weight, function);
    case ScaleKind::kFloat16:
      return with_group_count<Chunk, ScaleKind::kFloat16>(weight, function);
    default:
      return with_group_count<Chunk, ScaleKind::kFloat32>(weight, function);
  }
}

// Calls function with the chunk type of a weight of codes.
template <typename Function>
void with_chunk(const PackedMatrix& weight, const Function& function) {
  weight.kind == PackedKind::kNibble ? with_scale_kind<NibbleChunk>(weight, function)
                                     : with_scale_kind<ByteChunk>(weight, function);
}

}  // namespace saker::kernels::SAKER_ISA
