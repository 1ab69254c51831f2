// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights as tiles: one step of a block is sixteen pairs of columns by sixteen rows of the weight.
// bf16 weights lie like that, codes are unpacked.

#include "saker/kernels/amx/tile.h"
#include "saker/kernels/cpu/linear_tiles.h"

namespace saker::kernels::SAKER_ISA {

using WeightTile = std::uint32_t[kTilePairs][kBlockRows];

// Codes of 8 bits, times 2^-112: the bits of an integer below 256 in float16, without the last
// three of its fraction, are in bf16 that number. Inputs and scales make up for it.
struct TiledByteFormat : ByteFormat {
  template <int index>
  static U32x16 operand(Word word) {
    const U32x16 codes = bit_and(shift_right<8 * index>(word.whole()), broadcast_u32(0x00ff00ffU));
    return {half_bits(codes.v)};
  }
};

template <>
inline constexpr bool kGrouped<TiledByteFormat> = true;

// What inputs and a group's sum are multiplied by, powers of two: inputs below 2^67 stay finite.
template <typename Format>
inline constexpr float kInputFactor = 1.0F;
template <>
inline constexpr float kInputFactor<TiledByteFormat> = 0x1p60F;
template <typename Format>
inline constexpr float kProductFactor = 1.0F;
template <>
inline constexpr float kProductFactor<TiledByteFormat> = 0x1p52F;

// How far ahead of the loads memory is asked for, in bytes.
inline constexpr int kPrefetchBytes = 1024;

// Codes of one step of a block to pairs; `words` are the step's.
template <typename Format>
[[gnu::always_inline]] inline void unpack_codes(const std::byte* words, WeightTile& tile) {
  unroll<kTilePairs / Format::kOperands>([&](auto w) {
    __builtin_prefetch(words + w.kValue * Format::kStepBytes + kPrefetchBytes);
    const auto word = Format::load_word(words + w.kValue * Format::kStepBytes);
    unroll<Format::kOperands>([&](auto i) {
      store_u32(
          tile[w.kValue * Format::kOperands + i.kValue], Format::template operand<i.kValue>(word)
      );
    });
  });
}

// Bytes of one step's codes.
template <typename Format>
inline constexpr int kStepCodes = kTilePairs / Format::kOperands * Format::kStepBytes;

// A step of bf16 weights, which lies ready.
inline const std::byte* dense_step(const PackedMatrix& weight, int block, int step) {
  return weight.block(block) + static_cast<std::size_t>(step) * kTileBytes;
}

// The last step of bf16 weights where columns end inside of it: zeros behind them.
inline void copy_last_step(const PackedMatrix& weight, int block, WeightTile& tile) {
  const int step = weight.columns / kTileColumns;
  const int pairs = (weight.columns + 1) / 2 - step * kTilePairs;
  const std::size_t bytes = static_cast<std::size_t>(pairs) * sizeof(tile[0]);
  __builtin_memset(tile, 0, sizeof(tile));
  __builtin_memcpy(tile, dense_step(weight, block, step), bytes);
}

// Where the groups of a weight lie: worked out once, since it takes divisions.
struct GroupLayout {
  std::size_t block_bytes;
  std::size_t group_bytes;
  std::size_t word_bytes;
  ScaleKind scale_kind;
  int steps;  // Of a group.

  explicit GroupLayout(const PackedMatrix& weight)
      : block_bytes(weight.block_bytes()),
        group_bytes(weight.group_bytes()),
        word_bytes(weight.group_word_bytes()),
        scale_kind(weight.scale_kind),
        steps(weight.group / kTileColumns) {}

  const std::byte* group(const PackedMatrix& weight, int block, int index) const {
    return weight.data + static_cast<std::size_t>(block) * block_bytes +
           static_cast<std::size_t>(index) * group_bytes;
  }
};

// A group's scale and what the sum of its inputs is multiplied by, see add_group.
struct GroupFactors {
  F32x16 scale;
  F32x16 factor;
};

// `group` is where the group lies.
template <typename Format>
[[gnu::always_inline]] inline GroupFactors group_factors(
    const GroupLayout& layout, const std::byte* group
) {
  const std::byte* scales = group + layout.word_bytes;
  const F32x16 scale = load_scales(layout.scale_kind, scales);
  const F32x16 bias =
      load_scales(layout.scale_kind, scales + kBlockRows * scale_bytes(layout.scale_kind));
  return {mul(scale, broadcast(kProductFactor<Format>)), sum_factor<Format>(scale, bias)};
}

}  // namespace saker::kernels::SAKER_ISA
