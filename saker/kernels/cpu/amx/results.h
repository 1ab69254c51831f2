// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts sums in tiles, sixteen outputs by some rows of x, to rows of y.

#include "saker/kernels/cpu/amx/linear_inputs.h"

namespace saker::kernels::SAKER_ISA {

using SumTile = float[kTileHeight * kTileHeight];

// sums: sixteen lines of `width` floats -> `width` lines of sixteen.
inline void transpose_accumulators(SumTile& sums, int width) {
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

// A part of y: the rows [first_row, end_row) of one micro-panel by `blocks` blocks of sixteen
// outputs from first_block on.
struct ResultPart {
  int first_row = 0;
  int end_row = 0;
  int first_block = 0;
  int blocks = 0;
};

// Writes a part of y from `sums`, one tile per block. Goes row by row, since adjacent lines of y
// are faster to write.
inline void store_rows(
    const PackedMatrix& weight, const LinearTile& tile, const ResultPart& part, SumTile* sums
) {
  for (int b = 0; b < part.blocks; ++b) {
    transpose_accumulators(sums[b], tile.micro_panels.first_row(1));
  }
  for (int row = part.first_row; row < part.end_row; ++row) {
    for (int b = 0; b < part.blocks; ++b) {
      const float* line = sums[b] + (row - part.first_row) * kTileHeight;
      store_result(weight, tile, row, part.first_block + b, load(line));
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
