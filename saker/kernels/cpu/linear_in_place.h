// SPDX-License-Identifier: Apache-2.0
#pragma once

// Few rows of x (one sliver) times weights of bf16 that stay where the checkpoint has them, with
// the sums of packed ones, on sets that multiply pairs.

#include "saker/kernels/cpu/linear_rows.h"

namespace saker::kernels::SAKER_ISA {

#if defined(SAKER_IN_PLACE)
// The next block is asked for meanwhile: sixteen rows at once are more streams than a processor
// follows by itself.
template <int kRows>
void multiply_block_in_place(const PackedMatrix& weight, const LinearTile& tile, int block) {
  const auto* inputs = sliver_at<BFloat16Format>(weight, tile, 0).inputs;
  Ahead ahead = {weight.block(smaller(block + 1, weight.blocks() - 1))};
  F32x16 y[kRows][1];
  clear(y);
  for (int k = 0; k < weight.columns; k += kStepColumns) {
    U32x16 words[kSquarePairs];
    load_square(weight, block, k, words);
    unroll<kSquarePairs>([&](auto i) {
      ahead.ask(sizeof(U32x16));
      unroll<kRows>([&](auto r) {
        y[r.kValue][0] = PairOperand::step(y[r.kValue][0], words[i.kValue], inputs[r.kValue]);
      });
      inputs += kRows;
    });
  }
  store_results(weight, tile, block, y);
}

template <int kRows = kFewRows>
void multiply_few_in_place(const PackedMatrix& weight, const LinearTile& tile) {
  if constexpr (kRows > 0) {
    if (tile.slivers.rows != kRows) {
      multiply_few_in_place<kRows - 1>(weight, tile);
      return;
    }
    const int end = tile.first_block + tile.block_count;
    for (int block = tile.first_block; block < end; ++block) {
      multiply_block_in_place<kRows>(weight, tile, block);
    }
  }
}
#endif

}  // namespace saker::kernels::SAKER_ISA
