// SPDX-License-Identifier: Apache-2.0
#pragma once

// Queries and weights as int16, see code_products.h.

#include "saker/kernels/cpu/attention/code_terms.h"
#include "saker/kernels/cpu/attention/products.h"
#include "saker/kernels/cpu/gemm/steps.h"

namespace saker::kernels::SAKER_ISA {

#if defined(SAKER_INT16_DOT)
// Rows that are multiplied together. With more, sums are spilled where codes are unpacked; four
// rows are enough work to hide the unpacking.
inline constexpr int kCodeRows = 4;

// Replaces `count` floats, a multiple of 32, by pairs of integers in place. Returns their step: NaN
// if a value is not finite.
inline float round_to_int16_pairs(float* values, int count) {
  Largest largest;
  for (int i = 0; i < count; i += kVector) {
    largest.add(load(values + i));
  }
  const Int16Step of(largest.top());
  const F32x16 inverse = broadcast(of.inverse);
  auto* pairs = reinterpret_cast<std::uint32_t*>(values);
  for (int i = 0; i < count; i += 2 * kVector, pairs += kVector) {
    const U32x16 first = to_int(mul(load(values + i), inverse));
    store_u32(pairs, int16_pairs(first, to_int(mul(load(values + i + kVector), inverse))));
  }
  return of.step + largest.flaw();
}

// How the weights of a group of rows are rounded for one group of elements.
struct CodeWeights {
  alignas(64) float steps[kAttendGroupRows];
  float rests[kAttendGroupRows];  // The part that does not depend on codes.
};

using BlockIntegers = U32x16[kBlock / kVector];  // One row's.

inline void store_int16_pairs(const BlockIntegers& integers, std::uint32_t* pairs) {
  store_u32(pairs, int16_pairs(integers[0], integers[1]));
  store_u32(pairs + kVector, int16_pairs(integers[2], integers[3]));
}

// Sets the block's weights to integers for the codes of group g. store_row(integers, to) writes one
// row's.
template <typename StoreRow>
[[gnu::always_inline]] inline CodeWeights round_weights(
    const CodeBlock& codes,
    const Block& block,
    const RowGroup& group,
    int g,
    const StoreRow& store_row
) {
  constexpr int kVectors = kBlock / kVector;
  const ValueTerms terms(codes, block.values, g);
  alignas(64) float scaled[kAttendGroupRows][kBlock];
  alignas(64) float tops[kAttendGroupRows] = {};
  F32x16 rests[kAttendGroupRows];
  for (int r = 0; r < group.rows; ++r) {
    const BlockKeys& keys = group.keys[r];
    const bool whole = sees_whole_block(keys);
    F32x16 rest = zero();
    F32x16 largest = zero();
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const F32x16 weight = load(block.scores + r * kBlock + v * kVector);
      const F32x16 scale = whole ? terms.scales[v] : seen_lanes(keys, v, terms.scales[v]);
      const F32x16 value = whole ? terms.middles[v] : seen_lanes(keys, v, terms.middles[v]);
      const F32x16 product = mul(weight, scale);
      store(scaled[r] + v * kVector, product);
      rest = fma(weight, value, rest);
      largest = max(largest, magnitude(product));
    }
    tops[r] = reduce_max(largest);
    rests[r] = rest;
  }
  const Int16Steps of(load(tops));
  CodeWeights weights;
  store(weights.steps, of.step);
  alignas(64) float inverses[kAttendGroupRows];
  store(inverses, of.inverse);
  for (int r = 0; r < group.rows; ++r) {
    BlockIntegers integers;
    F32x16 sum = zero();
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      integers[v] = to_int(mul(load(scaled[r] + v * kVector), broadcast(inverses[r])));
      sum = add(sum, to_float(integers[v]));
    }
    store_row(integers, block.weights + r * kBlock / 2);
    const F32x16 offset = broadcast(-middle_code(codes.bits) * weights.steps[r]);
    weights.rests[r] = reduce_add(fma(sum, offset, rests[r]));
  }
  return weights;
}

#endif

}  // namespace saker::kernels::SAKER_ISA
