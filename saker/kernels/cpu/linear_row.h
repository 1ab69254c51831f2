// SPDX-License-Identifier: Apache-2.0
#pragma once

// One row of x times blocks of the weight: weights are read once and unpacked in registers, several
// blocks (and groups) at a time so that their chains of additions overlap.

#include "saker/kernels/cpu/linear_tiles.h"

namespace saker::kernels::SAKER_ISA {

template <typename Format, int kBlocks>
void multiply_row_dense(const PackedMatrix& weight, const LinearTile& tile, int block) {
  using Operand = typename Format::Operand;
  const auto x = sliver_at<Format>(weight, tile, tile.first_row);
  const std::byte* words = weight.block(block);
  const std::size_t stride = weight.block_bytes();
  const int steps = inputs_per_row<Format>(weight.columns) / Format::kOperands;
  const typename Operand::Input* inputs = x.inputs;
  F32x16 y[kBlocks];
  unroll<kBlocks>([&](auto b) { y[b.kValue] = zero(); });
  for (int step = 0; step < steps; ++step) {
    typename Format::Word word[kBlocks];
    unroll<kBlocks>([&](auto b) { word[b.kValue] = Format::load_word(words + b.kValue * stride); });
    unroll<Format::kOperands>([&](auto i) {
      unroll<kBlocks>([&](auto b) {
        y[b.kValue] = Operand::step(
            y[b.kValue], Format::template operand<i.kValue>(word[b.kValue]), inputs[i.kValue]
        );
      });
    });
    words += Format::kStepBytes;
    inputs += Format::kOperands;
  }
  // An odd column of bf16 weights whose operands are single: the other half of the word is no
  // column.
  if (steps * Format::kOperands < inputs_per_row<Format>(weight.columns)) {
    unroll<kBlocks>([&](auto b) {
      const auto word = Format::load_word(words + b.kValue * stride);
      y[b.kValue] = Operand::step(y[b.kValue], Format::template operand<0>(word), inputs[0]);
    });
  }
  unroll<kBlocks>([&](auto b) {
    store_result(weight, tile, tile.first_row, block + b.kValue, y[b.kValue]);
  });
}

// kBlocks blocks times kGroups groups are in flight.
template <typename Format, int kBlocks, int kGroups>
[[gnu::always_inline]] inline void add_row_groups(
    const PackedMatrix& weight,
    const std::byte* words,
    const typename Format::Operand::Input* inputs,
    const float* sums,
    F32x16 (&y)[kBlocks]
) {
  using Operand = typename Format::Operand;
  const std::size_t stride = weight.block_bytes();
  const std::size_t group_bytes = weight.group_bytes();
  const int group_inputs = weight.group / Operand::kPerOperand;
  const int steps = group_inputs / Format::kOperands;
  F32x16 a[kGroups][kBlocks];
  unroll<kGroups>([&](auto g) { unroll<kBlocks>([&](auto b) { a[g.kValue][b.kValue] = zero(); }); }
  );
  const std::byte* at = words;
  for (int step = 0; step < steps; ++step) {
    typename Format::Word word[kGroups][kBlocks];
    unroll<kGroups>([&](auto g) {
      unroll<kBlocks>([&](auto b) {
        word[g.kValue][b.kValue] =
            Format::load_word(at + b.kValue * stride + g.kValue * group_bytes);
      });
    });
    // Operand by operand, so that links of different chains stand side by side.
    unroll<Format::kOperands>([&](auto i) {
      unroll<kGroups>([&](auto g) {
        unroll<kBlocks>([&](auto b) {
          a[g.kValue][b.kValue] = Operand::step(
              a[g.kValue][b.kValue],
              Format::template operand<i.kValue>(word[g.kValue][b.kValue]),
              inputs[g.kValue * group_inputs + i.kValue]
          );
        });
      });
    });
    at += Format::kStepBytes;
    inputs += Format::kOperands;
  }
  unroll<kGroups>([&](auto g) {
    const F32x16 sum = broadcast(sums[g.kValue]);
    unroll<kBlocks>([&](auto b) {
      const std::byte* scales = at + b.kValue * stride + g.kValue * group_bytes;
      const F32x16 scale = load_scales(weight.scale_kind, scales);
      const F32x16 bias =
          load_scales(weight.scale_kind, scales + kBlockRows * scale_bytes(weight.scale_kind));
      const F32x16 factor = sum_factor<Format>(scale, bias);
      y[b.kValue] = add_group(y[b.kValue], a[g.kValue][b.kValue], sum, scale, factor);
    });
  });
}

template <typename Format, int kBlocks>
void multiply_row_grouped(const PackedMatrix& weight, const LinearTile& tile, int block) {
  // Groups are independent chains: with few blocks, more of them at a time keep the multipliers
  // busy.
  constexpr int kGroups = kBlocks < kRowBlocks ? 2 * kRowGroups : kRowGroups;
  const auto x = sliver_at<Format>(weight, tile, tile.first_row);
  const int group_inputs = weight.group / Format::Operand::kPerOperand;
  const std::byte* words = weight.block(block);
  F32x16 y[kBlocks];
  unroll<kBlocks>([&](auto b) { y[b.kValue] = zero(); });
  int group = 0;
  for (; group + kGroups <= weight.groups(); group += kGroups) {
    add_row_groups<Format, kBlocks, kGroups>(
        weight,
        words + group * weight.group_bytes(),
        x.inputs + group * group_inputs,
        x.sums + group,
        y
    );
  }
  for (; group < weight.groups(); ++group) {
    add_row_groups<Format, kBlocks, 1>(
        weight,
        words + group * weight.group_bytes(),
        x.inputs + group * group_inputs,
        x.sums + group,
        y
    );
  }
  unroll<kBlocks>([&](auto b) {
    store_result(weight, tile, tile.first_row, block + b.kValue, y[b.kValue]);
  });
}

template <typename Format, int kBlocks>
void multiply_row(const PackedMatrix& weight, const LinearTile& tile, int block) {
  if constexpr (kGrouped<Format>) {
    multiply_row_grouped<Format, kBlocks>(weight, tile, block);
  } else {
    multiply_row_dense<Format, kBlocks>(weight, tile, block);
  }
}

template <typename Format>
void multiply_single(const PackedMatrix& weight, const LinearTile& tile) {
  const int end = tile.first_block + tile.block_count;
  int block = tile.first_block;
  for (; block + kRowBlocks <= end; block += kRowBlocks) {
    multiply_row<Format, kRowBlocks>(weight, tile, block);
  }
  for (; block < end; ++block) {
    multiply_row<Format, 1>(weight, tile, block);
  }
}

}  // namespace saker::kernels::SAKER_ISA
