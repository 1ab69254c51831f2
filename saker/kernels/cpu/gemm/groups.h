// SPDX-License-Identifier: Apache-2.0
#pragma once

// Few rows of x (one micro-panel) times NR blocks of codes.

#include "saker/kernels/cpu/gemm/tiles.h"

namespace saker::kernels::SAKER_ISA {

// Adds the products of a group, `sums`, to y.
template <typename Format, int kRows, int kBlocks>
[[gnu::always_inline]] inline void add_products(
    const PackedMatrix& weight,
    BlockWords scales,
    const float* numbers,
    const typename Format::Operand::Sum (&sums)[kRows][kBlocks],
    float (&y)[kRows][kBlocks][kBlockRows]
) {
  unroll<kBlocks>([&](auto b) {
    const auto terms = load_terms<Format>(weight, scales.at + b.kValue * scales.stride);
    unroll<kRows>([&](auto r) {
      float* to = y[r.kValue][b.kValue];
      const auto& sum = sums[r.kValue][b.kValue];
      store(to, add_group<Format, kRows>(load(to), sum, numbers, r.kValue, terms));
    });
  });
}

// kGroups groups of kBlocks NR blocks are in flight. Their sums stay in registers; y, to which each
// group adds once, is in memory.
template <typename Format, int kGroups, int kRows, int kBlocks>
[[gnu::always_inline]] inline void add_groups(
    const PackedMatrix& weight,
    const GroupPlaces& places,
    const typename Format::Operand::Input* inputs,
    const float* numbers,
    Prefetcher& ahead,
    float (&y)[kRows][kBlocks][kBlockRows]
) {
  const int group_inputs = weight.group / Format::Operand::kPerOperand;
  typename Format::Operand::Sum a[kGroups][kRows][kBlocks];
  unroll<kGroups>([&](auto g) { clear(a[g.kValue]); });
  BlockWords words = places.words;
  for (int step = 0; step < group_inputs / Format::kOperands; ++step) {
    if constexpr (kRows * kBlocks == 1 && kCodesInOrder) {
      decltype(load_one_word<Format>(words.at)) word[kGroups];
      typename Format::Operand::Sum s[kGroups];
      unroll<kGroups>([&](auto g) {
        word[g.kValue] = load_one_word<Format>(words.at + g.kValue * places.word_step);
        s[g.kValue] = a[g.kValue][0][0];
        ahead.ask(Format::kStepBytes);
      });
      add_steps<Format>(word, inputs, group_inputs, s);
      unroll<kGroups>([&](auto g) { a[g.kValue][0][0] = s[g.kValue]; });
    } else {
      unroll<kGroups>([&](auto g) {
        typename Format::Word word[kBlocks];
        unroll<kBlocks>([&](auto b) {
          word[b.kValue] =
              Format::load_word(words.at + b.kValue * words.stride + g.kValue * places.word_step);
          ahead.ask(Format::kStepBytes);
        });
        add_step<Format, Format::kOperands>(
            word, inputs + g.kValue * group_inputs * kRows, a[g.kValue]
        );
      });
    }
    words.at += Format::kStepBytes;
    inputs += Format::kOperands * kRows;
  }
  ahead.ask(kGroups * kBlocks * term_line_bytes(weight));
  unroll<kGroups>([&](auto g) {
    const BlockWords terms = {places.terms.at + g.kValue * places.term_step, places.terms.stride};
    const float* of = numbers + g.kValue * kGroupNumbers<Format> * kRows;
    add_products<Format>(weight, terms, of, a[g.kValue], y);
  });
}

// As add_groups, for one group by Winograd's products.
template <typename Format, int kRows, int kBlocks>
[[gnu::always_inline]] inline void add_winograd_group(
    const PackedMatrix& weight,
    const GroupPlaces& places,
    const std::uint32_t* inputs,
    const float* numbers,
    Prefetcher& ahead,
    float (&y)[kRows][kBlocks][kBlockRows]
) {
  static_assert(Format::kOperands % 2 == 0);
  U32x16 a[kRows][kBlocks];
  start_winograd_sums(numbers + 2 * kRows, a);
  U32x16 own[1][kBlocks];
  clear(own);
  BlockWords words = places.words;
  for (int step = 0; step < weight.group / (2 * Format::kOperands); ++step) {
    typename Format::Word word[kBlocks];
    unroll<kBlocks>([&](auto b) {
      word[b.kValue] = Format::load_word(words.at + b.kValue * words.stride);
      ahead.ask(Format::kStepBytes);
    });
    unroll<Format::kOperands / 2>([&](auto i) {
      U32x16 first[kBlocks];
      U32x16 second[kBlocks];
      unroll<kBlocks>([&](auto b) {
        first[b.kValue] = Format::template operand<2 * i.kValue>(word[b.kValue]);
        second[b.kValue] = Format::template operand<2 * i.kValue + 1>(word[b.kValue]);
        own[0][b.kValue] = dot_int16_pairs(own[0][b.kValue], first[b.kValue], second[b.kValue]);
      });
      add_winograd_step(first, second, inputs, a);
      inputs += 2 * kRows;
    });
    words.at += Format::kStepBytes;
  }
  ahead.ask(kBlocks * term_line_bytes(weight));
  unroll<kBlocks>([&](auto b) { own[0][b.kValue] = sub_u32(broadcast_u32(0), own[0][b.kValue]); });
  add_own_products(own[0], a);
  add_products<Format>(weight, places.terms, numbers, a, y);
}

template <typename Format, int kRows, int kBlocks>
void multiply_rows_grouped(const PackedMatrix& weight, const LinearTile& tile, int block) {
  // Groups are independent chains: a single one would leave the multipliers waiting.
  constexpr int kGroups = kRows * kBlocks == 1 ? 2 : 1;
  const auto x = micro_panel_at<Format>(weight, tile, 0);
  const int group_inputs = weight.group / Format::Operand::kPerOperand * kRows;
  // With several blocks, prefetch starts behind all of them, since each is read to its end first. A
  // single block is read in order.
  Prefetcher ahead = {
      weight.block(block) + (kBlocks == 1 ? kPrefetchDistance : kBlocks * weight.block_bytes()),
      prefetch_step<Format>(weight),
  };
  alignas(64) std::byte memory[kBlocks * kMostSuperGroups * kSuperTermBytes];
  const int at_once = weight.in_super_blocks() ? weight.super_groups() : weight.groups();
  alignas(64) float y[kRows][kBlocks][kBlockRows] = {};
  for (int first = 0; first < weight.groups(); first += at_once) {
    const int end = smaller(first + at_once, weight.groups());
    GroupPlaces places = find_groups(weight, block, kBlocks, first, end - first, memory);
    const auto* inputs = x.inputs + first * group_inputs;
    const float* numbers = x.numbers + first * kGroupNumbers<Format> * kRows;
    int group = first;
    for (; kGroups > 1 && group + kGroups <= end; group += kGroups) {
      add_groups<Format, kGroups>(weight, places, inputs, numbers, ahead, y);
      places.advance(kGroups);
      inputs += kGroups * group_inputs;
      numbers += kGroups * kGroupNumbers<Format> * kRows;
    }
    for (; group < end; ++group) {
      if constexpr (kIsWinograd<Format>) {
        add_winograd_group<Format>(weight, places, inputs, numbers, ahead, y);
      } else {
        add_groups<Format, 1>(weight, places, inputs, numbers, ahead, y);
      }
      places.advance(1);
      inputs += group_inputs;
      numbers += kGroupNumbers<Format> * kRows;
    }
  }
  // Not store_results: with it g++ 12 moves y back into registers, which costs 7 % at 8 rows.
  unroll<kRows>([&](auto r) {
    unroll<kBlocks>([&](auto b) {
      store_result(weight, tile, r.kValue, block + b.kValue, load(y[r.kValue][b.kValue]));
    });
  });
}

}  // namespace saker::kernels::SAKER_ISA
