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

#include "saker/kernels/layout/packed_kinds.h"
#include "saker/kernels/layout/weight_format.h"

namespace saker::kernels {

struct BlockFormat {
  int columns = 0;  // Of a block.
  int bytes = 0;    // Of a block.
  int zero = 0;     // The code whose weight is 0; 0 where groups have biases.

  // A super-block: its groups have integer scales of their own.
  constexpr bool is_super() const { return columns == kSuperColumns; }
};

constexpr bool is_block(WeightKind kind) {
  return kind >= WeightKind::kQ40;
}

// REQUIRES: is_block(kind).
constexpr BlockFormat block_format(WeightKind kind) {
  switch (kind) {
    case WeightKind::kQ40:
      return {32, 18, 8};
    case WeightKind::kQ41:
      return {32, 20, 0};
    case WeightKind::kQ50:
      return {32, 22, 16};
    case WeightKind::kQ51:
      return {32, 24, 0};
    case WeightKind::kQ80:
      return {32, 34, 128};
    case WeightKind::kQ4K:
      return {kSuperColumns, 144, 0};
    case WeightKind::kQ5K:
      return {kSuperColumns, 176, 0};
    default:
      return {kSuperColumns, 210, 32};
  }
}

// The format of a weight in such blocks. REQUIRES: is_block(kind).
constexpr WeightFormat weight_format(WeightKind kind) {
  switch (kind) {
    case WeightKind::kQ40:
    case WeightKind::kQ41:
    case WeightKind::kQ4K:
      return {kind, 4, 32};
    case WeightKind::kQ50:
    case WeightKind::kQ51:
    case WeightKind::kQ5K:
      return {kind, 5, 32};
    case WeightKind::kQ80:
      return {kind, 8, 32};
    default:
      return {kind, 6, 16};
  }
}

// Columns of which a row has whole multiples.
constexpr int column_unit(const WeightFormat& format) {
  const int group = format.group_size == 0 ? 1 : format.group_size;
  return is_block(format.kind) ? block_format(format.kind).columns : group;
}

// Elements of a stored row of `columns` columns: values, words of codes, or bytes of blocks.
constexpr std::int64_t stored_elements(const WeightFormat& format, std::int64_t columns) {
  if (is_block(format.kind)) {
    const BlockFormat block = block_format(format.kind);
    return columns / block.columns * block.bytes;
  }
  return format.bits > 0 ? columns * format.bits / 32 : columns;
}

}  // namespace saker::kernels
