// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two products of attention over one block, q . k and weights times values, for a group of rows
// of a tile: in float32, or in pairs of bf16 where the set multiplies them. Queries and weights are
// then rounded to bf16, like the keys and values that they meet.
//
// Registers are what a set has to prepare before products of some number of rows.
//
// Products that take all keys of a block (kWholeBlocks) give unseen ones a weight of zero. What is
// not finite among the values would spread through 0 * infinity: see clean_values.h.

#include "saker/kernels/attention/scores.h"
#include "saker/kernels/attention/state.h"
#include "saker/kernels/attention/values.h"

namespace saker::kernels::SAKER_ISA {

// What a tile keeps of quantized pages, see scratch_floats.
struct CodeScratch {
  std::uint32_t* keys;  // A block's codes as pairs of bf16.
  std::uint32_t* values;
  float* part;                         // [kAttendGroupRows][64]
  float* query_sums;                   // By row and group of elements.
  const std::byte* keys_of = nullptr;  // Whose codes these are.
  const std::byte* values_of = nullptr;
};

// What one block needs beside its rows.
struct Block {
  std::int64_t begin;  // Position of its first key.
  const std::byte* keys;
  const std::byte* values;
  const float* queries;    // Of the tile, query_stride apart.
  float* scores;           // [kAttendGroupRows][64]
  std::uint32_t* weights;  // [kAttendGroupRows][32] pairs
  CodeScratch* codes;      // Of quantized pages only.
};

// Rows [first, first + rows) of the tile, all of which see some key of the block.
struct RowGroup {
  int first;
  int rows;
  const BlockKeys* keys;  // By row.
};

// Adds the values of the keys that each of the rows sees.
template <bool kBf16>
void add_seen_values(const ValueTask<float>& task, const BlockKeys* keys, int rows) {
  // The keys that all rows see in one range are added together, a row's others before and after
  // them.
  int from = 0;
  int to = rows > 1 ? kBlock : 0;
  for (int r = 0; r < rows; ++r) {
    const bool one_range = has_first(keys[r]) != has_second(keys[r]);
    const int begin = has_first(keys[r]) ? keys[r].first : keys[r].second;
    const int end = has_first(keys[r]) ? keys[r].first_end : keys[r].second_end;
    from = begin > from ? begin : from;
    to = !one_range ? 0 : end < to ? end : to;
  }
  const bool together = from < to;
  const auto row_task = [&](int r) {
    ValueTask<float> single = task;
    single.weights += r * kBlock;
    single.sums += r * task.stride;
    return single;
  };
  for (int r = 0; r < rows; ++r) {
    const int end = together ? from : kBlock;
    const auto limit = [&](int key) { return key < end ? key : end; };
    add_values<kBf16>(row_task(r), 1, keys[r].first, limit(keys[r].first_end));
    add_values<kBf16>(row_task(r), 1, keys[r].second, limit(keys[r].second_end));
  }
  if (!together) {
    return;
  }
  add_values<kBf16>(task, rows, from, to);
  for (int r = 0; r < rows; ++r) {
    const int end = has_first(keys[r]) ? keys[r].first_end : keys[r].second_end;
    add_values<kBf16>(row_task(r), 1, to, end);
  }
}

struct NoRegisters {
  void set_rows(int) {}
};

template <bool kBf16>
struct FloatProducts {
  using Registers = NoRegisters;
  static constexpr int kGroupRows = kMaxRows;
  static constexpr bool kWholeBlocks = false;
  static constexpr bool kUnpacks = false;
  static constexpr int kQueryElements = 1;  // In one word of a query.

  static void round_query(float*, int) {}

  static F32x16 rounded_weight(F32x16 weight) { return weight; }

  static void score(const AttendShape& shape, const Block& block, const RowGroup& group) {
    const float* q = block.queries + group.first * shape.query_stride;
    const int dim = kBf16 ? (shape.head_dim + 1) / 2 * 2 : shape.head_dim;
    const ScoreTask<float> task{q, shape.query_stride, block.keys, dim, block.scores};
    score_rows<kBf16>(task, group.rows);
  }

  static void add_values(
      const AttendShape& shape, const Block& block, const RowGroup& group, const State& state
  ) {
    float* sums = state.values + group.first * state.stride;
    const ValueTask<float> task{block.scores, block.values, shape.value_chunks, sums, state.stride};
    add_seen_values<kBf16>(task, group.keys, group.rows);
  }
};

#if defined(SAKER_BF16_DOT)
// Turns `count` floats, a multiple of 32, into pairs of bf16 in their place.
inline void round_to_pairs(float* values, int count) {
  auto* pairs = reinterpret_cast<std::uint32_t*>(values);
  for (int i = 0; i < count; i += 2 * kVector, pairs += kVector) {
    const U32x16 first = to_bf16(load(values + i));
    store_u32(pairs, pair_bf16<1>(first, to_bf16(load(values + i + kVector))));
  }
}

// The rows' weights as pairs of bf16.
inline void pair_weights(const Block& block, const RowGroup& group) {
  for (int r = 0; r < group.rows; ++r) {
    const float* from = block.scores + r * kBlock;
    std::uint32_t* to = block.weights + r * kBlock / 2;
    for (int half = 0; half < 2; ++half, from += 2 * kVector, to += kVector) {
      store_u32(to, pair_bf16<1>(to_bf16(load(from)), to_bf16(load(from + kVector))));
    }
  }
}

inline F32x16 round_to_bf16(F32x16 value) {
  return as_float(shift_left<16>(to_bf16(value)));
}

// Calls function<rows>() for 1 to most rows.
template <int most, typename Function>
[[gnu::always_inline]] inline void with_rows(int rows, const Function& function) {
  if constexpr (most > 1) {
    if (rows != most) {
      with_rows<most - 1>(rows, function);
      return;
    }
  }
  function.template operator()<most>();
}

struct PairProducts {
  using Registers = NoRegisters;
  static constexpr int kGroupRows = kMaxRows;
  static constexpr bool kWholeBlocks = true;
  static constexpr bool kUnpacks = false;
  static constexpr int kQueryElements = 2;

  static void round_query(float* query, int count) { round_to_pairs(query, count); }

  static F32x16 rounded_weight(F32x16 weight) { return round_to_bf16(weight); }

  static void score(const AttendShape& shape, const Block& block, const RowGroup& group) {
    const ScoreTask<std::uint32_t> task{
        reinterpret_cast<const std::uint32_t*>(block.queries + group.first * shape.query_stride),
        shape.query_stride,
        block.keys,
        (shape.head_dim + 1) / 2 * 2,
        block.scores,
    };
    with_rows<kMaxRows>(group.rows, [&]<int rows>() { score_pairs<rows>(task); });
  }

  static void add_values(
      const AttendShape& shape, const Block& block, const RowGroup& group, const State& state
  ) {
    pair_weights(block, group);
    const ValueTask<std::uint32_t> task{
        block.weights,
        block.values,
        shape.value_chunks,
        state.values + group.first * state.stride,
        state.stride,
    };
    with_rows<kMaxRows>(group.rows, [&]<int rows>() { add_value_pairs<rows>(task); });
  }
};
#endif

}  // namespace saker::kernels::SAKER_ISA
