// SPDX-License-Identifier: Apache-2.0
#pragma once

// Few rows of x (one micro-panel) times NR blocks of the weight. Weights are read once and unpacked
// in registers, several blocks (and groups) at a time, so that enough FMA chains overlap.

#include "saker/kernels/cpu/gemm/groups.h"
#include "saker/kernels/cpu/gemm/super_rows.h"

namespace saker::kernels::SAKER_ISA {

template <int kRows, int kBlocks>
void store_results(
    const PackedMatrix& weight, const LinearTile& tile, int block, const F32x16 (&y)[kRows][kBlocks]
) {
  unroll<kRows>([&](auto r) {
    unroll<kBlocks>([&](auto b) {
      store_result(weight, tile, r.kValue, block + b.kValue, y[r.kValue][b.kValue]);
    });
  });
}

template <typename Format, int kRows, int kBlocks>
void multiply_rows_dense(const PackedMatrix& weight, const LinearTile& tile, int block) {
  const auto x = micro_panel_at<Format>(weight, tile, 0);
  const std::byte* words = weight.block(block);
  const std::size_t stride = weight.block_bytes();
  const int steps = inputs_per_row<Format>(weight.columns) / Format::kOperands;
  const auto* inputs = x.inputs;
  F32x16 y[kRows][kBlocks];
  clear(y);
  typename Format::Word word[kBlocks];
  for (int step = 0; step < steps; ++step) {
    unroll<kBlocks>([&](auto b) { word[b.kValue] = Format::load_word(words + b.kValue * stride); });
    add_step<Format, Format::kOperands>(word, inputs, y);
    words += Format::kStepBytes;
    inputs += Format::kOperands * kRows;
  }
  // An odd last column of bf16 weights, for operands of one column: the other half of its word is
  // no column.
  if (steps * Format::kOperands < inputs_per_row<Format>(weight.columns)) {
    unroll<kBlocks>([&](auto b) { word[b.kValue] = Format::load_word(words + b.kValue * stride); });
    add_step<Format, 1>(word, inputs, y);
  }
  store_results(weight, tile, block, y);
}

template <typename Format, int kRows, int kBlocks>
void multiply_blocks(const PackedMatrix& weight, const LinearTile& tile, int block) {
  if constexpr (kHasSuperRows<Format> && kRows == 1 && kBlocks == 1) {
    if (weight.in_super_blocks()) {
      multiply_super_row<Format>(weight, tile, block);
      return;
    }
  }
  if constexpr (kGrouped<Format>) {
    multiply_rows_grouped<Format, kRows, kBlocks>(weight, tile, block);
  } else {
    multiply_rows_dense<Format, kRows, kBlocks>(weight, tile, block);
  }
}

template <typename Format, int kRows = kFew<Format>>
void multiply_few(const PackedMatrix& weight, const LinearTile& tile) {
  if constexpr (kRows > (kIsWinograd<Format> ? kByteRows : 0)) {
    if (tile.micro_panels.rows != kRows) {
      multiply_few<Format, kRows - 1>(weight, tile);
      return;
    }
    constexpr int kBlocks = blocks_for<Format>(kRows);
    const int end = tile.first_block + tile.block_count;
    int block = tile.first_block;
    for (; block + kBlocks <= end; block += kBlocks) {
      multiply_blocks<Format, kRows, kBlocks>(weight, tile, block);
    }
    for (; block < end; ++block) {
      multiply_blocks<Format, kRows, 1>(weight, tile, block);
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
