// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the matrix products of each instruction set offer (see dispatch.h), and the order of
// additions that they keep.
//
// Float weights: y is one chain of y = fma(w, x, y) over k in order, from 0.
// Codes: per group a is such a chain of code * x from 0; then y = fma(scale, a, y) and
// y = fma(bias, sum of the group's x, y). That sum adds sixteen lanes in order of k, then the
// lanes as a tree.
// Where the set multiplies bf16 pairs, x is rounded to bf16 for bf16 weights and codes, and a link
// of the chain takes two columns, the second of the pair first; 4-bit codes are multiplied as
// 128 + code, and fma(-128, scale, bias) takes the bias's place.
// Neither the rows beside a row, nor tiles, nor panels of unpacked weights change this order.

#include "saker/kernels/cpu/packed_matrix.h"

#include <cstddef>

namespace saker::kernels {

// Rows of x as they come: element (m, k) at data[m * row_stride + k * column_stride].
struct InputRows {
  const float* data = nullptr;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t column_stride = 1;
  int count = 0;
};

// A rectangle of the result: rows [first_row, first_row + row_count), columns of the given blocks.
struct LinearTile {
  const std::byte* prepared = nullptr;
  int total_rows = 0;
  int first_row = 0;  // A multiple of sliver_rows.
  int row_count = 0;  // At most kTileRows unless the rest is taken.
  int first_block = 0;
  int block_count = 0;          // At most kTileBlocks.
  const float* bias = nullptr;  // [N] or null.
  float* out = nullptr;         // [total_rows, N].
};

inline constexpr int kTileRows = 120;  // A multiple of every sliver_rows.
inline constexpr int kTileBlocks = 8;

struct LinearBodies {
  int sliver_rows;  // Rows of x that lie interleaved and are multiplied together.
  int block_step;   // Blocks that are multiplied together.

  // x in the form that `multiply` reads, sliver after sliver: prepared_row_bytes for each row.
  std::size_t (*prepared_row_bytes)(const PackedMatrix& weight);
  void (*prepare)(const PackedMatrix& weight, const InputRows& x, int sliver, std::byte* prepared);
  void (*multiply)(const PackedMatrix& weight, const LinearTile& tile);
};

}  // namespace saker::kernels
