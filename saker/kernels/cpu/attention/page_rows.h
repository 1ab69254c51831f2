// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes new rows into a bf16 page (kv_pages.h has its layout), with the bits of write_key and
// write_value. Keys are transposed there, so sixteen rows at a time are transposed in registers.

#include "saker/kernels/cpu/attention/blocks.h"
#include "saker/kernels/cpu/dispatch/attend_bodies.h"
#include "saker/kernels/cpu/simd/transpose_lanes.h"
#include "saker/kernels/cpu/simd/vec.h"

namespace saker::kernels::SAKER_ISA {

// Lanes of one row from element `at` on; zeros past its end.
inline F32x16 row_lanes(const float* row, int at, int width) {
  const int left = width - at;
  return left >= kVector ? load(row + at) : load_part(row + at, left > 0 ? left : 0);
}

// Elements [at, at + 32) of a row as sixteen pairs.
inline U32x16 row_pairs(const float* row, int at, int width) {
  return int16_pairs(
      to_bf16(row_lanes(row, at, width)), to_bf16(row_lanes(row, at + kVector, width))
  );
}

// Writes key rows [first, first + 16) of `rows`.
inline void write_sixteen_keys(const AttendShape& shape, const PageRows& rows, int first) {
  const int pairs = (shape.head_dim + 1) / 2;
  const float* from = rows.keys + first * rows.key_stride;
  auto* to = reinterpret_cast<std::uint32_t*>(rows.block) + rows.slot + first;
  for (int pair = 0; pair < pairs; pair += kVector) {
    U32x16 lines[kVector];
#pragma GCC unroll 16
    for (int row = 0; row < kVector; ++row) {
      lines[row] = row_pairs(from + row * rows.key_stride, 2 * pair, shape.head_dim);
    }
    transpose(lines);
    const int count = pairs - pair < kVector ? pairs - pair : kVector;
    for (int i = 0; i < count; ++i) {
      store_u32(to + (pair + i) * kBlock, lines[i]);
    }
  }
}

inline void write_key(const AttendShape& shape, const PageRows& rows, int row) {
  const int pairs = (shape.head_dim + 1) / 2;
  auto* to = reinterpret_cast<std::uint32_t*>(rows.block) + rows.slot + row;
  for (int pair = 0; pair < pairs; pair += kVector) {
    alignas(64) std::uint32_t words[kVector];
    store_u32(words, row_pairs(rows.keys + row * rows.key_stride, 2 * pair, shape.head_dim));
    const int count = pairs - pair < kVector ? pairs - pair : kVector;
    for (int i = 0; i < count; ++i) {
      to[(pair + i) * kBlock] = words[i];
    }
  }
}

// Writes the values of one row; with `both` also those of the next row, the other half of the same
// words.
inline void write_values(const AttendShape& shape, const PageRows& rows, int row, bool both) {
  const int slot = rows.slot + row;
  const float* first = rows.values + row * rows.value_stride;
  const float* second = first + rows.value_stride;
  auto* to = reinterpret_cast<std::uint32_t*>(rows.block + shape.key_bytes) + slot / 2 * kVector;
  for (int d = 0; d < shape.value_head_dim; d += kVector, to += kBlock / 2 * kVector) {
    const U32x16 lanes = to_bf16(row_lanes(first, d, shape.value_head_dim));
    if (both) {
      const U32x16 others = to_bf16(row_lanes(second, d, shape.value_head_dim));
      store_u32(to, bit_or(lanes, shift_left<16>(others)));
    } else if (slot % 2 == 0) {
      store_u32(to, bit_or(lanes, bit_and(load_u32(to), broadcast_u32(0xffff0000U))));
    } else {
      store_u32(to, bit_or(shift_left<16>(lanes), bit_and(load_u32(to), broadcast_u32(0xffffU))));
    }
  }
}

inline void write_bf16_rows(const AttendShape& shape, const PageRows& rows) {
  for (int row = 0; row < rows.count;) {
    if (row + kVector <= rows.count) {
      write_sixteen_keys(shape, rows, row);
      row += kVector;
    } else {
      write_key(shape, rows, row++);
    }
  }
  if (shape.values_in_keys) {
    return;
  }
  for (int row = 0; row < rows.count;) {
    const bool both = (rows.slot + row) % 2 == 0 && row + 1 < rows.count;
    write_values(shape, rows, row, both);
    row += both ? 2 : 1;
  }
}

}  // namespace saker::kernels::SAKER_ISA
