// SPDX-License-Identifier: Apache-2.0
#pragma once

// The products of attention over quantized pages in integers. Queries q, and weights w times scales
// s, are rounded to 16 bits, each row with a step from its largest element. They are multiplied by
// the codes c as the page has them. Sums of integers are exact, so their order does not matter.
// With scale s and bias b of a key's group g, and a page's offsets o (key_offsets.h):
//   score   q . o + sum over g of  s * (step * (q . c)) + b * (step * sum(q))
//   values  step * (r . c - middle * sum(r)) + w . (b + s * middle),   r = w * s / step
// Subtracting the middle code makes the rounding error of r meet half the codes' range at most.

#include "saker/kernels/cpu/attention/code_terms.h"
#include "saker/kernels/cpu/attention/int16_rounding.h"
#include "saker/kernels/cpu/attention/key_offsets.h"
#include "saker/kernels/cpu/attention/products.h"

namespace saker::kernels::SAKER_ISA {

#if defined(SAKER_INT16_DOT)
// kElements: elements of a query for which a word of its memory has space, one or two.
template <int kElements>
struct IntegerProducts {
  using Registers = NoRegisters;
  static constexpr int kGroupRows = kCodeRows;
  static constexpr bool kWholeBlocks = false;  // Codes are finite; terms of unseen keys are masked.
  static constexpr bool kUnpacks = false;
  static constexpr int kQueryElements = kElements;

  static void load_query(const AttendShape& shape, float* query, float* terms) {
    const CodeBlock& codes = shape.key_codes;
    const float step = round_to_int16_pairs(query, shape.query_stride);
    const auto* pairs = reinterpret_cast<const std::uint32_t*>(query);
    for (int g = 0; g < codes.groups; ++g) {
      // The last vector is padded with zeros.
      U32x16 sum = broadcast_u32(0);
      for (int i = 0; i < (codes.group_dim(g) + 1) / 2; i += kVector) {
        const U32x16 ones = broadcast_u32(0x00010001U);
        sum = dot_int16_pairs(sum, load_u32(pairs + g * codes.group / 2 + i), ones);
      }
      terms[g] = step * reduce_add(to_float(sum));
    }
    terms[codes.groups] = step;
  }

  [[gnu::always_inline]] static void store_weights(
      const Block& block, int row, const F32x16 (&weights)[4]
  ) {
    store_all(weights, block.scores + row * kBlock);
  }

  static void score(const AttendShape& shape, const Block& block, const RowGroup& group) {
    prefetch_terms(shape.value_codes, block.values);
    const OffsetScores offsets =
        offset_scores<QueryForm::kInt16>(shape, block, group, query_words<IntegerProducts>(shape));
    for (int i = 0; i < group.rows * kBlock; i += kVector) {
      store(block.scores + i, broadcast(offsets.rows[i / kBlock]));
    }
    with_code_words<IntegerCodes>(shape.key_codes.bits, [&]<typename Words>() {
      for (int g = 0; g < shape.key_codes.groups; ++g) {
        score_group<Words>(shape, block, group, g);
      }
    });
  }

  static void add_values(
      const AttendShape& shape, const Block& block, const RowGroup& group, const State& state
  ) {
    prefetch_terms(shape.key_codes, block.next_keys);
    with_code_words<IntegerCodes>(shape.value_codes.bits, [&]<typename Words>() {
      for (int g = 0; g < shape.value_codes.groups; ++g) {
        add_group<Words>(shape, block, group, state, g);
      }
    });
  }

 private:
  static void prefetch_terms(const CodeBlock& codes, const std::byte* from) {
    for (std::size_t at = codes.code_bytes; at < codes.bytes(); at += 64) {
      prefetch(from + at);
    }
  }

  // Adds the part of the scores from the elements of group g.
  template <typename Words>
  static void score_group(
      const AttendShape& shape, const Block& block, const RowGroup& group, int g
  ) {
    const CodeBlock& codes = shape.key_codes;
    const int stride = query_words<IntegerProducts>(shape);
    const ScoreTask<std::uint32_t> task{
        reinterpret_cast<const std::uint32_t*>(block.queries) + group.first * stride +
            g * codes.group / 2,
        stride,
        block.keys + kBlock * g * codes.group * codes.bits / 8,
        (codes.group_dim(g) + 1) / 2 * 2,
        block.scores,
        block.values - block.keys,
    };
    const float* terms = block.query_terms + group.first * query_terms(codes);
    const auto finish =
        [&]<int kRows, int kVectors>(const U32x16(&sums)[kRows][kVectors], int key) {
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) {
            const TermLanes keys = load_bf16_terms(codes, block.keys, g, key / kVector + v);
#pragma GCC unroll 8
            for (int r = 0; r < kRows; ++r) {
              const float* row = terms + r * query_terms(codes);
              const F32x16 products = mul(to_float(sums[r][v]), broadcast(row[codes.groups]));
              float* score = block.scores + r * kBlock + key + v * kVector;
              const F32x16 rest = fma(keys.bias, broadcast(row[g]), load(score));
              store(score, fma(products, keys.scale, rest));
            }
          }
        };
    with_rows<kCodeRows>(group.rows, [&]<int rows>() { score_pairs<Words, rows>(task, finish); });
  }

  // Adds the values' elements of group g.
  template <typename Words>
  static void add_group(
      const AttendShape& shape, const Block& block, const RowGroup& group, const State& state, int g
  ) {
    const CodeBlock& codes = shape.value_codes;
    const std::ptrdiff_t offset = kBlock * g * codes.group * codes.bits / 8;
    const CodeWeights weights = round_weights(codes, block, group, g, store_int16_pairs);
    const ValueTask<std::uint32_t> task{
        block.weights,
        block.values + offset,
        (codes.group_dim(g) + kVector - 1) / kVector,
        state.values + group.first * state.stride + g * codes.group,
        state.stride,
        block.next_keys - block.values,
    };
    with_rows<kCodeRows>(group.rows, [&]<int rows>() {
      add_value_pairs<Words, rows>(task, Ends{weights});
    });
  }

  // Start and end of the sums of values.
  struct Ends {
    const CodeWeights& weights;

    static U32x16 start(const float*, int) { return broadcast_u32(0); }

    void finish(float* sums, int row, U32x16 products) const {
      const F32x16 rest = add(load(sums), broadcast(weights.rests[row]));
      store(sums, fma(to_float(products), broadcast(weights.steps[row]), rest));
    }
  };
};

using CodeProducts = IntegerProducts<2>;
#endif

}  // namespace saker::kernels::SAKER_ISA
