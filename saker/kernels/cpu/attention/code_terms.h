// SPDX-License-Identifier: Apache-2.0
#pragma once

// The terms that scales and biases of a quantized page add to the products of its codes.
// quantized.h has the formulas.

#include "saker/kernels/cpu/attention/pair_words.h"
#include "saker/kernels/cpu/attention/products.h"

namespace saker::kernels::SAKER_ISA {

// Scale and bias of group g for sixteen keys.
struct TermLanes {
  F32x16 scale;
  F32x16 bias;
};

inline TermLanes load_bf16_terms(const CodeBlock& codes, const std::byte* from, int g, int vector) {
  const auto* scales = reinterpret_cast<const std::uint16_t*>(from + codes.code_bytes);
  const auto* biases =
      reinterpret_cast<const std::uint16_t*>(from + codes.code_bytes + codes.term_bytes);
  const int at = g * kBlock + vector * kVector;
  return {load_bf16(scales + at), load_bf16(biases + at)};
}

inline TermLanes load_terms(const CodeBlock& codes, const std::byte* from, int g, int vector) {
  if (codes.bf16) {
    return load_bf16_terms(codes, from, g, vector);
  }
  const auto* scales = reinterpret_cast<const float*>(from + codes.code_bytes);
  const auto* biases = reinterpret_cast<const float*>(from + codes.code_bytes + codes.term_bytes);
  const int at = g * kBlock + vector * kVector;
  return {load(scales + at), load(biases + at)};
}

// The sums of a query's groups, from the query as the products read it.
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

// Adds the group's part of the scores, from its products. The first group starts from a row's
// common score, the same for all keys.
inline void add_scores(
    const AttendShape& shape,
    const Block& block,
    const RowGroup& group,
    int g,
    const float* common_scores
) {
  const CodeBlock& codes = shape.key_codes;
  const CodeScratch& scratch = *block.codes;
  const F32x16 offset = broadcast(-code_offset(codes.bits));
  for (int v = 0; v < kBlock / kVector; ++v) {
    const TermLanes terms = load_terms(codes, block.keys, g, v);
    const F32x16 bias = fma(offset, terms.scale, terms.bias);
    for (int r = 0; r < group.rows; ++r) {
      const F32x16 sum = broadcast(block.query_terms[(group.first + r) * query_terms(codes) + g]);
      float* score = block.scores + r * kBlock + v * kVector;
      const F32x16 before = g == 0 ? broadcast(common_scores[r]) : load(score);
      const F32x16 rest = fma(bias, sum, before);
      store(score, fma(load(scratch.part + r * kBlock + v * kVector), terms.scale, rest));
    }
  }
}

// Terms by which a block's weights are multiplied besides the codes of group g.
struct ValueTerms {
  F32x16 scales[kBlock / kVector];
  F32x16 middles[kBlock / kVector];  // The value of the middle code.

  [[gnu::always_inline]] ValueTerms(const CodeBlock& codes, const std::byte* values, int g) {
    const F32x16 middle = broadcast(middle_code(codes.bits));
#pragma GCC unroll 4
    for (int v = 0; v < kBlock / kVector; ++v) {
      const TermLanes terms = load_terms(codes, values, g, v);
      scales[v] = terms.scale;
      middles[v] = fma(middle, terms.scale, terms.bias);
    }
  }
};

// Sets the weights of `part` by which the group's codes are multiplied, and adds to the values what
// does not depend on codes.
template <typename Products>
void scale_weights(
    const AttendShape& shape,
    const Block& block,
    const Block& part,
    const RowGroup& group,
    int g,
    const State& state
) {
  constexpr int kVectors = kBlock / kVector;
  const CodeBlock& codes = shape.value_codes;
  const int chunks = (codes.group_dim(g) + kVector - 1) / kVector;
  const F32x16 middle = broadcast(-(code_offset(codes.bits) + middle_code(codes.bits)));
  const ValueTerms terms(codes, block.values, g);
  for (int r = 0; r < group.rows; ++r) {
    const BlockKeys& keys = group.keys[r];
    const bool whole = sees_whole_block(keys);
    F32x16 rest = zero();
    F32x16 all_scaled[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const F32x16 weight = load(block.scores + r * kBlock + v * kVector);
      const F32x16 scale = whole ? terms.scales[v] : seen_lanes(keys, v, terms.scales[v]);
      const F32x16 value = whole ? terms.middles[v] : seen_lanes(keys, v, terms.middles[v]);
      const F32x16 scaled = Products::rounded_weight(mul(weight, scale));
      all_scaled[v] = scaled;
      rest = fma(weight, value, rest);
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

}  // namespace saker::kernels::SAKER_ISA
