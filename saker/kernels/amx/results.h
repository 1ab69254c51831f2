// SPDX-License-Identifier: Apache-2.0
#pragma once

// From sums as tiles hold them, sixteen outputs by some rows of x, to rows of y.

#include "saker/kernels/amx/linear_inputs.h"

namespace saker::kernels::SAKER_ISA {

using SumTile = float[kTileHeight * kTileHeight];

// sums: sixteen lines of `width` floats -> `width` lines of sixteen.
inline void turn_sums(SumTile& sums, int width) {
  if (width == 1) {
    return;
  }
  U32x16 lines[kTileHeight];
  for (int i = 0; i < kTileHeight; ++i) {
    lines[i] = as_u32(load_part(sums + i * width, width));
  }
  transpose(lines);
  for (int row = 0; row < width; ++row) {
    store(sums + row * kTileHeight, as_float(lines[row]));
  }
}

// Writes the rows [first, end) of y, as the tile's slivers have them, in blocks of sixteen outputs
// from `block` on. Row after row: lines of y that follow each other fill faster.
inline void store_rows(
    const PackedMatrix& weight,
    const LinearTile& tile,
    int first,
    int end,
    int block,
    int blocks,
    SumTile* sums
) {
  for (int b = 0; b < blocks; ++b) {
    turn_sums(sums[b], tile.slivers.first_row(1));
  }
  for (int row = first; row < end; ++row) {
    for (int b = 0; b < blocks; ++b) {
      store_result(weight, tile, row, block + b, load(sums[b] + (row - first) * kTileHeight));
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
