// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two products of attention over one block, q . k and weights times values, for a group of rows
// of a tile, in float32. For pairs of bf16 see pair_products.h and tile_products.h.
//
// `Registers` is the state that a set prepares before products of some number of rows.
//
// Some products read a quantized page's codes in place (kReadsCodes).
//
// Products that take all keys of a block (kWholeBlocks) give unseen keys a weight of zero.
// Non-finite values would spread through 0 * infinity, see mask_nonfinite.h.

#include "saker/kernels/cpu/attention/scores.h"
#include "saker/kernels/cpu/attention/state.h"
#include "saker/kernels/cpu/attention/values.h"

namespace saker::kernels::SAKER_ISA {

// A tile's scratch memory for quantized pages, see scratch_floats.
struct CodeScratch {
  std::uint32_t* keys;  // A block's codes as bf16 pairs, unless multiplied in place.
  std::uint32_t* values;
  float* part;                         // [kAttendGroupRows][64]
  const std::byte* keys_of = nullptr;  // The block whose codes these are.
  const std::byte* values_of = nullptr;
  bool in_place = false;
};

// One block's memory and that of the rows that read it.
struct Block {
  std::int64_t begin;  // Position of its first key.
  const std::byte* keys;
  const std::byte* values;
  const std::byte* next_keys;  // The next block's, or `values`.
  const float* queries;        // The tile's rows of this KV head, query_words apart.
  const float* query_terms;    // For the same rows, see query_terms(); quantized pages only.
  float* scores;               // [rows][64]
  std::uint32_t* weights;      // [rows][32] pairs
  CodeScratch* codes;          // For quantized pages only.
};

// Rows [first, first + rows) of the tile; each sees some key of the block.
struct RowGroup {
  int first;
  int rows;
  bool whole;             // All rows see all keys.
  const BlockKeys* keys;  // By row.
};

// From one query of a tile to the next, in 32-bit words.
template <typename Products>
constexpr int query_words(const AttendShape& shape) {
  return shape.query_stride / Products::kQueryElements;
}

// Adds the values of the keys that each row sees.
template <bool kBf16>
void add_seen_values(const ValueTask<float>& task, const BlockKeys* keys, int rows) {
  // The keys that all rows see in one range are added together; each row's other keys before and
  // after.
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

[[gnu::always_inline]] inline void store_all(const F32x16 (&values)[4], float* to) {
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    store(to + v * kVector, values[v]);
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
  static constexpr bool kReadsCodes = false;
  static constexpr int kQueryElements = 1;  // Per word of a query.

  // Converts a scaled query to the form that is multiplied, and computes its terms for quantized
  // pages.
  static void load_query(const AttendShape&, float*, float*) {}

  static F32x16 rounded_weight(F32x16 weight) { return weight; }

  // Stores the weights of one row of a group.
  [[gnu::always_inline]] static void store_weights(
      const Block& block, int row, const F32x16 (&weights)[4]
  ) {
    store_all(weights, block.scores + row * kBlock);
  }

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

}  // namespace saker::kernels::SAKER_ISA
