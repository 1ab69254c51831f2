// SPDX-License-Identifier: Apache-2.0
#pragma once

// The blocks of GGUF files that products read as codes with the file's own scales
// (https://github.com/ggml-org/ggml, ggml-common.h and ggml-quants.c). A row of a weight is a
// sequence of blocks; a block holds the codes of some columns and their scales. All numbers are
// little-endian, d, m and dmin are float16.
//
//   kQ40  d, 16 bytes of nibbles                           d * (code - 8)
//   kQ41  d, m, 16 bytes of nibbles                        d * code + m
//   kQ50  d, 4 bytes of fifth bits, 16 bytes of nibbles    d * (code - 16)
//   kQ51  d, m, 4 bytes of fifth bits, 16 of nibbles       d * code + m
//   kQ80  d, 32 signed bytes                               d * byte
//   kQ4K  d, dmin, 12 bytes of eight 6-bit scales and eight 6-bit minima, 128 bytes of nibbles
//   kQ5K  d, dmin, these 12 bytes, 32 bytes of fifth bits, 128 bytes of nibbles
//         (d * scale) * code - dmin * minimum
//   kQ6K  128 bytes of nibbles, 64 bytes of the two bits above, 16 signed scales, d
//         (d * scale) * (code - 32)
//   kQ2K  16 bytes, each a scale below a minimum of 4 bits, 64 bytes of codes of 2 bits, d, dmin
//         (d * scale) * code - dmin * minimum
//   kQ3K  32 bytes of third bits, 64 bytes of the two bits below, 12 bytes of 16 6-bit scales, d
//         (d * (scale - 32)) * (code - 4)
//   kIq4Nl  d, 16 bytes of nibbles, which name kTableCodes    d * (code - 128)
//   kIq4Xs  d, 2 bytes and 4 bytes of eight 6-bit scales, 128 bytes of such nibbles
//           (d * (scale - 32)) * (code - 128)

#include "saker/kernels/layout/packed_kinds.h"
#include "saker/kernels/layout/weight_format.h"

#include <cstdint>

namespace saker::kernels {

// The kinds of WeightFormat beside those of MLX (WeightKind), with numbers of their own.
enum class BlockKind : std::uint8_t {
  kQ40 = 16,
  kQ41,
  kQ50,
  kQ51,
  kQ80,
  kQ4K,
  kQ5K,
  kQ6K,
  kQ2K,
  kQ3K,
  kIq4Nl,
  kIq4Xs,
};

inline constexpr BlockKind kBlockKinds[] = {
    BlockKind::kQ40,
    BlockKind::kQ41,
    BlockKind::kQ50,
    BlockKind::kQ51,
    BlockKind::kQ80,
    BlockKind::kQ4K,
    BlockKind::kQ5K,
    BlockKind::kQ6K,
    BlockKind::kQ2K,
    BlockKind::kQ3K,
    BlockKind::kIq4Nl,
    BlockKind::kIq4Xs,
};

struct BlockFormat {
  int columns = 0;  // Columns of a block.
  int bytes = 0;    // Bytes of a block.
  int zero = 0;     // The code whose weight is 0; 0 where groups have biases.
  TermKind terms = TermKind::kScaleBias;
  bool has_table = false;  // Nibbles name codes of 8 bits, kTableCodes.

  // A super-block: its groups have integer scales of their own.
  constexpr bool is_super() const { return columns == kSuperColumns; }
};

constexpr bool is_block(WeightKind kind) {
  return static_cast<std::uint8_t>(kind) >= static_cast<std::uint8_t>(BlockKind::kQ40);
}

// REQUIRES: is_block(kind).
constexpr BlockKind block_kind(WeightKind kind) {
  return static_cast<BlockKind>(kind);
}

constexpr BlockFormat block_format(BlockKind kind) {
  switch (kind) {
    case BlockKind::kQ40:
      return {32, 18, 8, TermKind::kScale};
    case BlockKind::kQ41:
      return {32, 20, 0, TermKind::kScaleBias};
    case BlockKind::kQ50:
      return {32, 22, 16, TermKind::kScale};
    case BlockKind::kQ51:
      return {32, 24, 0, TermKind::kScaleBias};
    case BlockKind::kQ80:
      return {32, 34, 128, TermKind::kScale};
    case BlockKind::kQ4K:
      return {kSuperColumns, 144, 0, TermKind::kPairs};
    case BlockKind::kQ5K:
      return {kSuperColumns, 176, 0, TermKind::kPairs};
    case BlockKind::kQ2K:
      return {kSuperColumns, 84, 0, TermKind::kNibbles};
    case BlockKind::kQ3K:
      return {kSuperColumns, 110, 4, TermKind::kSixBits};
    case BlockKind::kIq4Nl:
      return {32, 18, 128, TermKind::kScale, true};
    case BlockKind::kIq4Xs:
      return {kSuperColumns, 136, 128, TermKind::kSplit, true};
    default:
      return {kSuperColumns, 210, 32, TermKind::kBytes};
  }
}

// The format of a weight in such blocks.
constexpr WeightFormat weight_format(BlockKind kind) {
  const auto number = static_cast<WeightKind>(kind);
  switch (kind) {
    case BlockKind::kQ40:
    case BlockKind::kQ41:
    case BlockKind::kQ4K:
    case BlockKind::kIq4Nl:
    case BlockKind::kIq4Xs:
      return {number, 4, 32};
    case BlockKind::kQ50:
    case BlockKind::kQ51:
    case BlockKind::kQ5K:
      return {number, 5, 32};
    case BlockKind::kQ80:
      return {number, 8, 32};
    case BlockKind::kQ2K:
      return {number, 2, 16};
    case BlockKind::kQ3K:
      return {number, 3, 16};
    default:
      return {number, 6, 16};
  }
}

// Columns of which a row has whole multiples.
constexpr int column_unit(const WeightFormat& format) {
  const int group = format.group_size == 0 ? 1 : format.group_size;
  return is_block(format.kind) ? block_format(block_kind(format.kind)).columns : group;
}

// Elements of a stored row of `columns` columns: values, words of codes, or bytes of blocks.
constexpr std::int64_t stored_elements(const WeightFormat& format, std::int64_t columns) {
  if (is_block(format.kind)) {
    const BlockFormat block = block_format(block_kind(format.kind));
    return columns / block.columns * block.bytes;
  }
  return format.bits > 0 ? columns * format.bits / 32 : columns;
}

}  // namespace saker::kernels
