// SPDX-License-Identifier: Apache-2.0
#pragma once

// Few rows of x (one sliver) times blocks of the weight: weights are read once and unpacked in
// registers, several blocks (and groups) at a time so that enough chains of additions overlap.

#include "saker/kernels/cpu/linear_tiles.h"

namespace saker::kernels::SAKER_ISA {

// Adds one step to the chains: word[b] of each block times inputs of each row. Operand by operand,
// so that links of different chains stand side by side.
template <typename Format, int kCount, int kRows, int kBlocks>
[[gnu::always_inline]] inline void add_step(
    const typename Format::Word (&word)[kBlocks],
    const typename Format::Operand::Input* inputs,
    typename Format::Operand::Sum (&sums)[kRows][kBlocks]
) {
  using Operand = typename Format::Operand;
  unroll<kCount>([&](auto i) {
    unroll<kBlocks>([&](auto b) {
      const auto operand = Format::template operand<i.kValue>(word[b.kValue]);
      unroll<kRows>([&](auto r) {
        sums[r.kValue][b.kValue] =
            Operand::step(sums[r.kValue][b.kValue], operand, inputs[i.kValue * kRows + r.kValue]);
      });
    });
  });
}

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
  const auto x = sliver_at<Format>(weight, tile, 0);
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
  // An odd column of bf16 weights whose operands are single: the other half of the word is no
  // column.
  if (steps * Format::kOperands < inputs_per_row<Format>(weight.columns)) {
    unroll<kBlocks>([&](auto b) { word[b.kValue] = Format::load_word(words + b.kValue * stride); });
    add_step<Format, 1>(word, inputs, y);
  }
  store_results(weight, tile, block, y);
}

// kGroups groups of kBlocks blocks are in flight. Their sums take the registers; y, which each
// group adds to once, lies in memory.
template <typename Format, int kGroups, int kRows, int kBlocks>
[[gnu::always_inline]] inline void add_groups(
    const PackedMatrix& weight,
    BlockWords words,
    const typename Format::Operand::Input* inputs,
    const float* numbers,
    Ahead& ahead,
    float (&y)[kRows][kBlocks][kBlockRows]
) {
  const std::size_t group_bytes = weight.read_group_bytes();
  const int group_inputs = weight.group / Format::Operand::kPerOperand;
  typename Format::Operand::Sum a[kGroups][kRows][kBlocks];
  unroll<kGroups>([&](auto g) { clear(a[g.kValue]); });
  for (int step = 0; step < group_inputs / Format::kOperands; ++step) {
    unroll<kGroups>([&](auto g) {
      typename Format::Word word[kBlocks];
      unroll<kBlocks>([&](auto b) {
        word[b.kValue] =
            Format::load_word(words.at + b.kValue * words.stride + g.kValue * group_bytes);
        ahead.ask(Format::kStepBytes);
      });
      add_step<Format, Format::kOperands>(
          word, inputs + g.kValue * group_inputs * kRows, a[g.kValue]
      );
    });
    words.at += Format::kStepBytes;
    inputs += Format::kOperands * kRows;
  }
  ahead.ask(kGroups * kBlocks * (group_bytes - weight.read_word_bytes()));
  unroll<kGroups>([&](auto g) {
    unroll<kBlocks>([&](auto b) {
      const std::byte* scales = words.at + b.kValue * words.stride + g.kValue * group_bytes;
      const auto terms = load_terms<Format>(weight, scales);
      unroll<kRows>([&](auto r) {
        const auto& products = a[g.kValue][r.kValue][b.kValue];
        const float* of = numbers + g.kValue * kGroupNumbers<Format> * kRows;
        float* to = y[r.kValue][b.kValue];
        store(to, add_group<Format, kRows>(load(to), products, of, r.kValue, terms));
      });
    });
  });
}

template <typename Format, int kRows, int kBlocks>
void multiply_rows_grouped(const PackedMatrix& weight, const LinearTile& tile, int block) {
  // Groups are independent chains: one alone would leave the multipliers waiting.
  constexpr int kGroups = kRows * kBlocks == 1 ? 2 : 1;
  constexpr int kWideGroups = 8 / kBlocks;
  const auto x = sliver_at<Format>(weight, tile, 0);
  const int group_inputs = weight.group / Format::Operand::kPerOperand * kRows;
  const std::size_t group_bytes = weight.read_group_bytes();
  // Blocks side by side are read up to their ends before what was asked for, one block in order.
  Ahead ahead = {
      weight.block(block) + (kBlocks == 1 ? kAheadBytes : kBlocks * weight.block_bytes()),
      kLineBytes * weight.group_bytes() / group_bytes,
  };
  alignas(64) std::byte wide[kWideGroups * kBlocks * kWideGroupBytes];
  const int at_once = weight.in_planes() ? kWideGroups : weight.groups();
  alignas(64) float y[kRows][kBlocks][kBlockRows] = {};
  for (int first = 0; first < weight.groups(); first += at_once) {
    const int end = smaller(first + at_once, weight.groups());
    BlockWords words = {weight.block(block), weight.block_bytes()};
    if (weight.in_planes()) {
      words = widen(weight, block, kBlocks, first, end - first, wide);
    }
    const auto* inputs = x.inputs + first * group_inputs;
    const float* numbers = x.numbers + first * kGroupNumbers<Format> * kRows;
    int group = first;
    for (; group + kGroups <= end; group += kGroups) {
      add_groups<Format, kGroups>(weight, words, inputs, numbers, ahead, y);
      words.at += kGroups * group_bytes;
      inputs += kGroups * group_inputs;
      numbers += kGroups * kGroupNumbers<Format> * kRows;
    }
    for (; group < end; ++group) {
      add_groups<Format, 1>(weight, words, inputs, numbers, ahead, y);
      words.at += group_bytes;
      inputs += group_inputs;
      numbers += kGroupNumbers<Format> * kRows;
    }
  }
  // Not by store_results: with it g++ 12 takes y back into registers, which 8 rows pay with 7 %.
  unroll<kRows>([&](auto r) {
    unroll<kBlocks>([&](auto b) {
      store_result(weight, tile, r.kValue, block + b.kValue, load(y[r.kValue][b.kValue]));
    });
  });
}

template <typename Format, int kRows, int kBlocks>
void multiply_blocks(const PackedMatrix& weight, const LinearTile& tile, int block) {
  if constexpr (kGrouped<Format>) {
    multiply_rows_grouped<Format, kRows, kBlocks>(weight, tile, block);
  } else {
    multiply_rows_dense<Format, kRows, kBlocks>(weight, tile, block);
  }
}

template <typename Format, int kRows = kFewRows>
void multiply_few(const PackedMatrix& weight, const LinearTile& tile) {
  if constexpr (kRows > 0) {
    if (tile.slivers.rows != kRows) {
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
