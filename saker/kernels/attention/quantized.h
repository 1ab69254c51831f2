// SPDX-License-Identifier: Apache-2.0
#pragma once

// The products of attention over quantized pages. A block's codes c are unpacked into scratch
// memory once for all rows of a tile and multiplied as they are; scales s and biases b of a key's
// group g come in with the sums, so that no element of the cache is ever rounded:
//   score   sum over g of  s * (q . c) + b * sum(q)      q: the group's elements
//   values  (w * s) . c + w . b                          for the elements of a group
// In sets that round weights, w * s is rounded, not w. Then c less the middle of all codes is what
// meets the rounding error, so that it is no larger than without codes:
//   values  r . c - middle * sum(r) + w . (b + s * middle),   r = rounded(w * s)

#include "saker/kernels/attention/products.h"
#include "saker/kernels/attention/unpack.h"

namespace saker::kernels::SAKER_ISA {

// The sums of a query's groups, the query as the products read it.
template <typename Products>
void sum_groups(const CodeBlock& codes, const float* query, float* sums) {
  for (int g = 0; g < codes.groups; ++g) {
    const float* at = query + g * codes.group / Products::kQueryElements;
    const int words =
        (codes.group_dim(g) + Products::kQueryElements - 1) / Products::kQueryElements;
    F32x16 sum = zero();
    for (int i = 0; i < words; i += kVector) {
      const F32x16 lanes = load_part(at + i, words - i < kVector ? words - i : kVector);
      if constexpr (Products::kQueryElements == 2) {
        sum = add(sum, add(even_bf16(as_u32(lanes)), odd_bf16(as_u32(lanes))));
      } else {
        sum = add(sum, lanes);
      }
    }
    sums[g] = reduce_add(sum);
  }
}

// `Products` over the unpacked codes.
template <typename Products>
struct QuantizedProducts {
  using Registers = typename Products::Registers;
  static constexpr int kGroupRows = Products::kGroupRows;
  static constexpr bool kWholeBlocks = false;  // Codes are finite, and terms of unseen keys masked.
  static constexpr bool kUnpacks = true;

  [[gnu::always_inline]] static void store_weights(
      const Block& block, int row, const F32x16 (&weights)[4]
  ) {
    store_all(weights, block.scores + row * kBlock);
  }

  static void unpack_block_keys(const AttendShape& shape, const Block& block) {
    if (block.codes->keys_of != block.keys) {
      unpack_keys(shape.key_codes, block.keys, block.codes->keys);
      block.codes->keys_of = block.keys;
    }
  }

  static void unpack_block_values(const AttendShape& shape, const Block& block) {
    if (block.codes->values_of != block.values) {
      unpack_values(shape.value_codes, block.values, block.codes->values);
      block.codes->values_of = block.values;
    }
  }

  // REQUIRES: the block's keys are unpacked.
  static void score(const AttendShape& shape, const Block& block, const RowGroup& group) {
    const CodeBlock& codes = shape.key_codes;
    const CodeScratch& scratch = *block.codes;
    AttendShape part_shape = shape;
    Block part = block;
    part.scores = scratch.part;
    for (int g = 0; g < codes.groups; ++g) {
      const int first = g * codes.group;
      part_shape.head_dim = codes.group_dim(g);
      part.keys = reinterpret_cast<const std::byte*>(scratch.keys + first / 2 * kBlock);
      part.queries = block.queries + first / Products::kQueryElements;
      Products::score(part_shape, part, group);
      add_scores(shape, block, group, g);
    }
  }

  // REQUIRES: the block's values are unpacked.
  static void add_values(
      const AttendShape& shape, const Block& block, const RowGroup& group, const State& state
  ) {
    const CodeBlock& codes = shape.value_codes;
    const CodeScratch& scratch = *block.codes;
    AttendShape part_shape = shape;
    Block part = block;
    part.scores = scratch.part;
    for (int g = 0; g < codes.groups; ++g) {
      const int first = g * codes.group;
      part_shape.value_chunks = (codes.group_dim(g) + kVector - 1) / kVector;
      part.values = reinterpret_cast<const std::byte*>(scratch.values + first / 2 * kBlock);
      State part_state = state;
      part_state.values += first;
      scale_weights(shape, block, part, group, g, part_state);
      Products::add_values(part_shape, part, group, part_state);
    }
  }

 private:
  // The group's part of the scores, from its products.
  static void add_scores(
      const AttendShape& shape, const Block& block, const RowGroup& group, int g
  ) {
    const CodeBlock& codes = shape.key_codes;
    const CodeScratch& scratch = *block.codes;
    const F32x16 offset = broadcast(-code_offset(codes.bits));
    for (int v = 0; v < kBlock / kVector; ++v) {
      const TermLanes terms = load_terms(codes, block.keys, g, v);
      const F32x16 bias = fma(offset, terms.scale, terms.bias);
      for (int r = 0; r < group.rows; ++r) {
        const F32x16 sum = broadcast(scratch.query_sums[(group.first + r) * codes.groups + g]);
        float* score = block.scores + r * kBlock + v * kVector;
        const F32x16 rest = g == 0 ? mul(bias, sum) : fma(bias, sum, load(score));
        store(score, fma(load(scratch.part + r * kBlock + v * kVector), terms.scale, rest));
      }
    }
  }

  // Sets the weights of `part` that the group's codes meet, and adds to the values what does not
  // depend on codes.
  static void scale_weights(
      const AttendShape& shape,
      const Block& block,
      const Block& part,
      const RowGroup& group,
      int g,
      const State& state
  ) {
    const CodeBlock& codes = shape.value_codes;
    const int chunks = (codes.group_dim(g) + kVector - 1) / kVector;
    const F32x16 middle = broadcast(-code_middle(codes.bits));
    const F32x16 to_middle = broadcast(code_middle(codes.bits) - code_offset(codes.bits));
    for (int r = 0; r < group.rows; ++r) {
      const BlockKeys& keys = group.keys[r];
      const bool whole = keys.second == 0 && keys.second_end == kBlock;
      F32x16 rest = zero();
      F32x16 all_scaled[kBlock / kVector];
      for (int v = 0; v < kBlock / kVector; ++v) {
        TermLanes terms = load_terms(codes, block.values, g, v);
        if (!whole) {
          const U32x16 mask = seen_mask(keys, v);
          terms.scale = as_float(bit_and(mask, as_u32(terms.scale)));
          terms.bias = as_float(bit_and(mask, as_u32(terms.bias)));
        }
        const F32x16 weight = load(block.scores + r * kBlock + v * kVector);
        const F32x16 scaled = Products::rounded_weight(mul(weight, terms.scale));
        all_scaled[v] = scaled;
        rest = fma(weight, fma(to_middle, terms.scale, terms.bias), rest);
        rest = fma(middle, scaled, rest);
      }
      Products::store_weights(part, r, all_scaled);
      const F32x16 all = broadcast(reduce_add(rest));
      float* values = state.values + (group.first + r) * state.stride;
      for (int i = 0; i < chunks * kVector; i += kVector) {
        store(values + i, add(load(values + i), all));
      }
    }
  }
};

}  // namespace saker::kernels::SAKER_ISA
