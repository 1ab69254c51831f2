// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights in the order kInTiles as tiles of int8: one step is sixteen rows of 64 columns.

#include "saker/kernels/amx/linear_weights.h"
#include "saker/kernels/int8/panels.h"

namespace saker::kernels::SAKER_ISA::int8 {

inline constexpr int kStepCodes = 64;
inline constexpr int kPanelSteps = kPanel / kStepCodes;
inline constexpr int kPanelChunks = kPanel / kChunkColumns;

// A block's panel.
struct BlockCodes {
  alignas(64) WeightTile steps[kPanelSteps];
  alignas(64) float scales[kBlockRows];
};

// Of a row, with NaN where something is not finite.
struct RowScale {
  float scale;
  float inverse;

  explicit RowScale(float largest)
      : scale(largest / kLargest), inverse(scale > kSmallestScale ? 1 / scale : 0) {}
};

// Where a row's bytes of step `step` lie.
inline std::byte* row_of(BlockCodes& to, int step, int row) {
  return to.steps[step] + row * kTileStride;
}

// Codes of 4 bits: the sixteen bytes that a group's codes can mean are worked out, and looked up.
template <ScaleKind kKind, int kGroupCount>
struct NibbleBytes {
  using Chunk = NibbleChunk<kKind, kGroupCount>;
  static constexpr ScaleKind kScaleKind = kKind;

  static void write_row(
      const std::byte* codes, const float* terms, float inverse, std::byte* (&to)[2]
  ) {
    const U32x16 both = load_u32(reinterpret_cast<const std::uint32_t*>(codes));
    const U32x16 mask = broadcast_u32(0x0f0f0f0fU);
    const U32x16 low = bit_and(both, mask);
    const U32x16 high = bit_and(shift_right<4>(both), mask);
    const F32x16 factor = broadcast(inverse);
    const auto meanings = [&](int group) {
      const F32x16 bias = mul(broadcast(terms[2 * group]), factor);
      return to_int(fma(mul(broadcast(terms[2 * group + 1]), factor), load(kCodes), bias));
    };
    unroll<2>([&](auto half) {
      // Groups of the 64 columns: two, or one that may go beyond them.
      constexpr int kFirst = half.kValue * kGroupCount / 2;
      constexpr int kSecond = kGroupCount == 4 ? kFirst + 1 : kFirst;
      const U32x16 first = meanings(kFirst);
      const U32x16 table = byte_tables(first, kSecond == kFirst ? first : meanings(kSecond));
      const U32x16 index = every_other_byte<half.kValue>(low, high);
      store_u32(reinterpret_cast<std::uint32_t*>(to[half.kValue]), look_up_bytes(table, index));
    });
  }

  alignas(64
  ) static constexpr float kCodes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
};

// Codes of 8 bits.
template <ScaleKind kKind, int kGroupCount>
struct ByteBytes {
  using Chunk = ByteChunk<kKind, kGroupCount>;
  static constexpr ScaleKind kScaleKind = kKind;

  static void write_row(
      const std::byte* codes, const float* terms, float inverse, std::byte* (&to)[2]
  ) {
    const F32x16 factor = broadcast(inverse);
    unroll<kGroupCount>([&](auto group) {
      constexpr int kColumns = kChunkColumns / kGroupCount;
      constexpr int kFirst = group.kValue * kColumns;
      const F32x16 bias = mul(broadcast(terms[2 * group.kValue]), factor);
      const F32x16 scale = mul(broadcast(terms[2 * group.kValue + 1]), factor);
      unroll<kColumns / kLanes>([&](auto i) {
        constexpr int kColumn = kFirst + i.kValue * kLanes;
        const F32x16 lanes = to_float(load_bytes(codes + kColumn));
        store_low_bytes(
            to[kColumn / kStepCodes] + kColumn % kStepCodes, to_int(fma(lanes, scale, bias))
        );
      });
    });
  }
};

// Bias and scale of the groups of some chunks of a block as float32, and what each row's codes can
// mean at most.
template <typename Bytes>
struct PanelTerms {
  using Chunk = typename Bytes::Chunk;
  static constexpr int kTerms = 2 * Chunk::kGroups;  // Of a row of a chunk.

  alignas(64) float terms[kPanelChunks][kBlockRows * kTerms];
  float largest[kBlockRows] = {};

  PanelTerms(const PackedMatrix& weight, const std::byte* chunk, int chunks) {
    const F32x16 last = broadcast(static_cast<float>(weight.largest_code));
    float flaw[kBlockRows] = {};
    for (int c = 0; c < chunks; ++c, chunk += weight.chunk_bytes()) {
      const std::byte* pairs = chunk + kBlockRows * Chunk::kCodeBytes;
      alignas(64) float reach[kBlockRows * kTerms];
      for (int i = 0; i < kBlockRows * kTerms; i += kLanes) {
        const F32x16 pair = load_pairs<Bytes::kScaleKind>(pairs + i * (Chunk::kPairBytes / kTerms));
        store(terms[c] + i, pair);
        // In even lanes: the larger of what the first and the last code mean.
        store(reach + i, max(magnitude(pair), magnitude(fma(swap_pairs(pair), last, pair))));
      }
      for (int i = 0; i < kBlockRows * kTerms; i += 2) {
        float& top = largest[i / kTerms];
        top = reach[i] > top ? reach[i] : top;
        flaw[i / kTerms] += reach[i] * 0.0F;
      }
    }
    for (int row = 0; row < kBlockRows; ++row) {
      largest[row] += flaw[row];
    }
  }
};

template <typename Bytes>
void find_coded_bytes(
    const PackedMatrix& weight, const std::byte* chunk, int chunks, BlockCodes& to
) {
  using Terms = PanelTerms<Bytes>;
  const Terms terms(weight, chunk, chunks);
  for (int row = 0; row < kBlockRows; ++row) {
    const RowScale scale(terms.largest[row]);
    to.scales[row] = scale.scale;
    const std::byte* codes = chunk + row * Terms::Chunk::kCodeBytes;
    for (int c = 0; c < chunks; ++c, codes += weight.chunk_bytes()) {
      std::byte* steps[2] = {row_of(to, 2 * c, row), row_of(to, 2 * c + 1, row)};
      Bytes::write_row(codes, terms.terms[c] + row * Terms::kTerms, scale.inverse, steps);
    }
  }
}

// bf16: [steps of 32][16][32] values.
inline void find_dense_bytes(const std::byte* first, int halves, BlockCodes& to) {
  for (int row = 0; row < kBlockRows; ++row) {
    const auto lanes = [&](int half, int part) {
      const std::byte* at = first + half * kTileBytes + row * kTileStride + part * kLanes * 2;
      return load_bf16(reinterpret_cast<const std::uint16_t*>(at));
    };
    Largest largest;
    for (int half = 0; half < halves; ++half) {
      largest.add(lanes(half, 0));
      largest.add(lanes(half, 1));
    }
    const RowScale scale(largest.of_all());
    to.scales[row] = scale.scale;
    const F32x16 factor = broadcast(scale.inverse);
    for (int half = 0; half < halves; ++half) {
      std::byte* at = row_of(to, half / 2, row) + half % 2 * (kStepCodes / 2);
      store_low_bytes(at, to_int(mul(lanes(half, 0), factor)));
      store_low_bytes(at + kLanes, to_int(mul(lanes(half, 1), factor)));
    }
    if (halves % 2 != 0) {
      __builtin_memset(row_of(to, halves / 2, row) + kStepCodes / 2, 0, kStepCodes / 2);
    }
  }
}

template <template <ScaleKind, int> typename Bytes>
void find_coded_block(
    const PackedMatrix& weight, const std::byte* chunk, int chunks, BlockCodes& to
) {
  with_scale_kind<Bytes>(weight, [&](auto bytes) {
    find_coded_bytes<decltype(bytes)>(weight, chunk, chunks, to);
  });
}

// The panel from column k on of a block; returns its steps.
inline int find_codes(const PackedMatrix& weight, int block, int k, BlockCodes& to) {
  const std::byte* at = weight.block(block);
  if (!weight.has_groups()) {
    const int count = smaller(kPanel, weight.columns - k);
    const int halves = (count + kStepColumns - 1) / kStepColumns;
    find_dense_bytes(at + k / kStepColumns * kTileBytes, halves, to);
    return (halves + 1) / 2;
  }
  const int chunks = smaller(kPanelChunks, weight.chunks() - k / kChunkColumns);
  at += k / kChunkColumns * weight.chunk_bytes();
  weight.kind == PackedKind::kNibble ? find_coded_block<NibbleBytes>(weight, at, chunks, to)
                                     : find_coded_block<ByteBytes>(weight, at, chunks, to);
  return 2 * chunks;
}

}  // namespace saker::kernels::SAKER_ISA::int8
