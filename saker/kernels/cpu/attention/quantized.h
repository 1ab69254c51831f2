// SPDX-License-Identifier: Apache-2.0
#pragma once

// The products of attention over quantized pages. A block's codes c are multiplied without scaling:
// unpacked into scratch memory once for all rows of a tile or, for few rows, in registers. Scales s
// and biases b of a key's group g are applied to the sums, so no element of the cache is rounded:
//   score   sum over g of  s * (q . c) + b * sum(q)      q: the group's elements
//           plus q . o, o: the page's offsets (key_offsets.h)
//   values  (w * s) . c + w . b                          for the elements of a group
// Sets that round weights round w * s, not w. The rounding error is then multiplied by c less the
// middle of all codes, so that it is no larger than without codes:
//   values  r . c - middle * sum(r) + w . (b + s * middle),   r = rounded(w * s)

#include "saker/kernels/cpu/attention/code_terms.h"
#include "saker/kernels/cpu/attention/key_offsets.h"
#include "saker/kernels/cpu/attention/products.h"
#include "saker/kernels/cpu/attention/unpack.h"

namespace saker::kernels::SAKER_ISA {

// Applies `Products` to codes.
template <typename Products>
struct QuantizedProducts {
  using Registers = typename Products::Registers;
  static constexpr int kGroupRows = Products::kGroupRows;
  static constexpr int kQueryElements = Products::kQueryElements;
  static constexpr bool kWholeBlocks = false;  // Codes are finite; terms of unseen keys are masked.
  static constexpr bool kUnpacks = true;

  static void load_query(const AttendShape& shape, float* query, float* terms) {
    Products::load_query(shape, query, terms);
    sum_groups<Products>(shape.key_codes, query, terms);
  }

  [[gnu::always_inline]] static void store_weights(
      const Block& block, int row, const F32x16 (&weights)[4]
  ) {
    store_all(weights, block.scores + row * kBlock);
  }

  // True if a tile of so many rows needs no unpacked blocks.
  static constexpr bool reads_codes(int rows) {
    return Products::kReadsCodes && rows <= kGroupRows;
  }

  static void score(const AttendShape& shape, const Block& block, const RowGroup& group) {
    const CodeBlock& codes = shape.key_codes;
    unpack_block_keys(shape, block);
    const CodeScratch& scratch = *block.codes;
    AttendShape part_shape = shape;
    Block part = block;
    part.scores = scratch.part;
    constexpr auto kForm = Products::kQueryElements == 2 ? QueryForm::kBf16 : QueryForm::kFloat;
    const OffsetScores offsets =
        offset_scores<kForm>(shape, block, group, query_words<Products>(shape));
    for (int g = 0; g < codes.groups; ++g) {
      const int first = g * codes.group;
      part_shape.head_dim = codes.group_dim(g);
      part.queries = block.queries + first / Products::kQueryElements;
      score_codes(part_shape, block, part, group, first);
      add_scores(shape, block, group, g, offsets.rows);
    }
  }

  static void add_values(
      const AttendShape& shape, const Block& block, const RowGroup& group, const State& state
  ) {
    const CodeBlock& codes = shape.value_codes;
    unpack_block_values(shape, block);
    const CodeScratch& scratch = *block.codes;
    AttendShape part_shape = shape;
    Block part = block;
    part.scores = scratch.part;
    for (int g = 0; g < codes.groups; ++g) {
      const int first = g * codes.group;
      part_shape.value_chunks = (codes.group_dim(g) + kVector - 1) / kVector;
      State part_state = state;
      part_state.values += first;
      scale_weights<Products>(shape, block, part, group, g, part_state);
      add_value_codes(part_shape, block, part, group, part_state, first);
    }
  }

 private:
  static void unpack_block_keys(const AttendShape& shape, const Block& block) {
    if (!block.codes->in_place && block.codes->keys_of != block.keys) {
      unpack_keys(shape.key_codes, block.keys, block.codes->keys);
      block.codes->keys_of = block.keys;
    }
  }

  static void unpack_block_values(const AttendShape& shape, const Block& block) {
    if (!block.codes->in_place && block.codes->values_of != block.values) {
      unpack_values(shape.value_codes, block.values, block.codes->values);
      block.codes->values_of = block.values;
    }
  }

  // The products of elements from `first` on with the block's keys, to part.scores.
  static void score_codes(
      const AttendShape& shape, const Block& block, Block& part, const RowGroup& group, int first
  ) {
    const CodeScratch& scratch = *block.codes;
    if constexpr (Products::kReadsCodes) {
      if (scratch.in_place) {
        const std::ptrdiff_t offset = kBlock * first * shape.key_codes.bits / 8;
        part.keys = block.keys + offset;
        part.values = block.values + offset;
        with_code_words<CodeWords>(shape.key_codes.bits, [&]<typename Words>() {
          Products::template score_words<Words>(shape, part, group);
        });
        return;
      }
    }
    part.keys = reinterpret_cast<const std::byte*>(scratch.keys + first / 2 * kBlock);
    Products::score(shape, part, group);
  }

  // Adds the products of the weights of `part` and the values' elements from `first` on.
  static void add_value_codes(
      const AttendShape& shape,
      const Block& block,
      Block& part,
      const RowGroup& group,
      const State& state,
      int first
  ) {
    const CodeScratch& scratch = *block.codes;
    if constexpr (Products::kReadsCodes) {
      if (scratch.in_place) {
        const std::ptrdiff_t offset = kBlock * first * shape.value_codes.bits / 8;
        part.values = block.values + offset;
        part.next_keys = block.next_keys + offset;
        with_code_words<CodeWords>(shape.value_codes.bits, [&]<typename Words>() {
          Products::template add_value_words<Words>(shape, part, group, state);
        });
        return;
      }
    }
    part.values = reinterpret_cast<const std::byte*>(scratch.values + first / 2 * kBlock);
    Products::add_values(shape, part, group, state);
  }
};

}  // namespace saker::kernels::SAKER_ISA
