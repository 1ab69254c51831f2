// SPDX-License-Identifier: Apache-2.0
#pragma once

// The products of attention in pairs of bf16, where the set multiplies them. Queries and weights
// are rounded to bf16, like the keys and values.

#include "saker/kernels/cpu/attention/products.h"

namespace saker::kernels::SAKER_ISA {

#if defined(SAKER_BF16_DOT)
// Replaces `count` floats, a multiple of 32, by pairs of bf16 in place.
inline void round_to_pairs(float* values, int count) {
  auto* pairs = reinterpret_cast<std::uint32_t*>(values);
  for (int i = 0; i < count; i += 2 * kVector, pairs += kVector) {
    store_u32(pairs, bf16_pairs(load(values + i), load(values + i + kVector)));
  }
}

// Common parts of products of pairs, on vectors or tiles.
struct PairOperands {
  static constexpr bool kWholeBlocks = true;
  static constexpr bool kUnpacks = false;
  static constexpr int kQueryElements = 2;

  static void load_query(const AttendShape& shape, float* query, float*) {
    round_to_pairs(query, shape.query_stride);
  }

  static F32x16 rounded_weight(F32x16 weight) { return round_to_bf16(weight); }
};

// Sums that stay in memory between products.
struct InPlace {
  static F32x16 start(const float* sums, int) { return load(sums); }

  static void finish(float* sums, int, F32x16 products) { store(sums, products); }
};

struct PairProducts : PairOperands {
  using Registers = NoRegisters;
  static constexpr int kGroupRows = kMaxRows;
  static constexpr bool kReadsCodes = true;

  [[gnu::always_inline]] static void store_weights(
      const Block& block, int row, const F32x16 (&weights)[4]
  ) {
    std::uint32_t* to = block.weights + row * kBlock / 2;
    store_u32(to, bf16_pairs(weights[0], weights[1]));
    store_u32(to + kVector, bf16_pairs(weights[2], weights[3]));
  }

  static void score(const AttendShape& shape, const Block& block, const RowGroup& group) {
    score_words<PlainWords>(shape, block, group);
  }

  static void add_values(
      const AttendShape& shape, const Block& block, const RowGroup& group, const State& state
  ) {
    add_value_words<PlainWords>(shape, block, group, state);
  }

  // Scores of the keys of `block`, in the form of Words.
  template <typename Words>
  static void score_words(const AttendShape& shape, const Block& block, const RowGroup& group) {
    const int stride = query_words<PairProducts>(shape);
    const ScoreTask<std::uint32_t> task{
        reinterpret_cast<const std::uint32_t*>(block.queries) + group.first * stride,
        stride,
        block.keys,
        (shape.head_dim + 1) / 2 * 2,
        block.scores,
        block.values - block.keys,
    };
    const auto store_scores =
        [&]<int kRows, int kVectors>(const F32x16(&sums)[kRows][kVectors], int key) {
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v) {
              store(block.scores + r * kBlock + key + v * kVector, sums[r][v]);
            }
          }
        };
    with_rows<kMaxRows>(group.rows, [&]<int rows>() {
      score_pairs<Words, rows>(task, store_scores);
    });
  }

  template <typename Words>
  static void add_value_words(
      const AttendShape& shape, const Block& block, const RowGroup& group, const State& state
  ) {
    const ValueTask<std::uint32_t> task{
        block.weights,
        block.values,
        shape.value_chunks,
        state.values + group.first * state.stride,
        state.stride,
        block.next_keys - block.values,
    };
    with_rows<kMaxRows>(group.rows, [&]<int rows>() {
      add_value_pairs<Words, rows>(task, InPlace());
    });
  }
};
#endif

}  // namespace saker::kernels::SAKER_ISA
