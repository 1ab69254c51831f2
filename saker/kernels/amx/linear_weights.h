// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights as tiles: one step of a block is sixteen rows of 32 bf16. bf16 weights lie like that;
// codes are unpacked, chunk by chunk, to scale * code + bias, rounded to float32 and then to bf16.

#include "saker/kernels/amx/linear_inputs.h"

namespace saker::kernels::SAKER_ISA {

using WeightTile = std::byte[kTileBytes];

inline constexpr int kChunkSteps = kChunkColumns / kStepColumns;

// Eight pairs of bias and scale as float32.
template <ScaleKind kKind>
[[gnu::always_inline]] inline F32x16 load_pairs(const std::byte* at) {
  if constexpr (kKind == ScaleKind::kBFloat16) {
    return load_bf16(reinterpret_cast<const std::uint16_t*>(at));
  } else if constexpr (kKind == ScaleKind::kFloat16) {
    return load_f16(reinterpret_cast<const std::uint16_t*>(at));
  } else {
    return load(reinterpret_cast<const float*>(at));
  }
}

alignas(64
) inline constexpr float kWholeCodes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Codes of 4 bits: the sixteen weights that a group's codes can mean are worked out, and looked up.
template <ScaleKind kKind, int kGroupCount, const float (&kValues)[16] = kWholeCodes>
struct NibbleChunk {
  static constexpr int kGroups = kGroupCount;           // Of a row.
  static constexpr int kCodeBytes = kChunkColumns / 2;  // Of a row.
  static constexpr int kPairBytes = kGroups * 2 * scale_bytes(kKind);

  [[gnu::always_inline]] static F32x16 load_terms(const std::byte* pairs) {
    return load_pairs<kKind>(pairs);
  }

  [[gnu::always_inline]] static void unpack_row(
      const std::byte* codes, const float* terms, std::byte* to
  ) {
    const U32x16 words = load_u32(reinterpret_cast<const std::uint32_t*>(codes));
    U32x16 tables[kChunkSteps];
    if constexpr (kGroups == 1) {
      const F32x16 weights = meanings(terms, 0);
      tables[0] = tables[1] = tables[2] = tables[3] = bf16_pairs(weights, weights);
    } else {
      unroll<kGroups / 2>([&](auto pair) {
        constexpr int kFirst = 2 * pair.kValue;
        constexpr int kSteps = kChunkSteps / kGroups;  // Of a group.
        const U32x16 both = bf16_pairs(meanings(terms, kFirst), meanings(terms, kFirst + 1));
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
  [[gnu::always_inline]] static F32x16 meanings(const float* terms, int group) {
    const F32x16 bias = broadcast(terms[2 * group]);
    return fma(broadcast(terms[2 * group + 1]), load(kValues), bias);
  }
};

// Codes of 8 bits. They become bits of 2^15 + code, and biases are those of such numbers.
template <ScaleKind kKind, int kGroupCount>
struct ByteChunk {
  static constexpr int kGroups = kGroupCount;
  static constexpr int kCodeBytes = kChunkColumns;
  static constexpr int kPairBytes = kGroups * 2 * scale_bytes(kKind);

  [[gnu::always_inline]] static F32x16 load_terms(const std::byte* pairs) {
    const F32x16 terms = load_pairs<kKind>(pairs);
    return fma(alternate(-kByteBase, 0), swap_pairs(terms), terms);
  }

  [[gnu::always_inline]] static void unpack_row(
      const std::byte* codes, const float* terms, std::byte* to
  ) {
    unroll<kChunkSteps>([&](auto step) {
      constexpr int kGroup = step.kValue * kGroups / kChunkSteps;
      constexpr int kQuarter = step.kValue % 2 * 2;  // Of 64 codes.
      const F32x16 bias = broadcast(terms[2 * kGroup]);
      const F32x16 scale = broadcast(terms[2 * kGroup + 1]);
      const U32x16 words =
          load_u32(reinterpret_cast<const std::uint32_t*>(codes + step.kValue / 2 * 64));
      const F32x16 first = fma(scale, above_byte_base<kQuarter>(words), bias);
      const F32x16 second = fma(scale, above_byte_base<kQuarter + 1>(words), bias);
      store_u32(
          reinterpret_cast<std::uint32_t*>(to + step.kValue * kTileBytes), bf16_pairs(first, second)
      );
    });
  }
};

// The sixteen rows of a chunk on their way to its four tiles, which lie one behind the other. Asks
// for the chunk `next` meanwhile.
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
    ask_for(next + kCodes, kBlockRows * Chunk::kPairBytes);
    for (int i = 0; i < kTerms; i += kLanes) {
      constexpr int kBytes = Chunk::kPairBytes / (2 * Chunk::kGroups);  // Of a term.
      store(terms_ + i, Chunk::load_terms(chunk + kCodes + i * kBytes));
    }
  }

  [[gnu::always_inline]] void unpack_rows(int first, int count) {
    for (int row = first; row < first + count; ++row) {
      ask_for(next_ + row * Chunk::kCodeBytes, Chunk::kCodeBytes);
      Chunk::unpack_row(
          chunk_ + row * Chunk::kCodeBytes,
          terms_ + row * 2 * Chunk::kGroups,
          tiles_[0] + row * kTileStride
      );
    }
  }

 private:
  static constexpr int kTerms = kBlockRows * 2 * Chunk::kGroups;

  const std::byte* chunk_;
  const std::byte* next_;
  WeightTile* tiles_;
  alignas(64) float terms_[kTerms];  // Bias and scale by row and group.
};

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
  switch (weight.kind) {
    case PackedKind::kNibble:
      return with_scale_kind<NibbleChunk>(weight, function);
    case PackedKind::kE2m1:
      return function(NibbleChunk<ScaleKind::kBFloat16, 4, E2m1Format::kValues>());
    default:
      return with_scale_kind<ByteChunk>(weight, function);
  }
}

}  // namespace saker::kernels::SAKER_ISA
