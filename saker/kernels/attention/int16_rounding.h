// SPDX-License-Identifier: Apache-2.0
#pragma once

// Queries and weights as integers of 16 bits, see code_products.h.

#include "saker/kernels/attention/code_terms.h"
#include "saker/kernels/attention/products.h"
#include "saker/kernels/codes/steps.h"

namespace saker::kernels::SAKER_ISA {

#if defined(SAKER_INT16_DOT)
// Rows that are multiplied together: with more, sums fall out of the registers where codes are
// unpacked, and those of four are work enough to hide it.
inline constexpr int kCodeRows = 4;

// Turns `count` floats, a multiple of 32, into pairs of integers in their place. Returns their
// step, NaN where one of them is not finite.
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

// The weights of a group of rows as a group of elements meets them.
struct CodeWeights {
  float steps[kCodeRows];
  float rests[kCodeRows];  // What does not depend on the codes.
};

// Sets the block's weights to what the codes of group g meet.
inline CodeWeights round_weights(
    const CodeBlock& codes, const Block& block, const RowGroup& group, int g
) {
  constexpr int kVectors = kBlock / kVector;
  const ValueTerms terms(codes, block.values, g);
  CodeWeights weights;
  for (int r = 0; r < group.rows; ++r) {
    const BlockKeys& keys = group.keys[r];
    const bool whole = sees_whole_block(keys);
    F32x16 rest = zero();
    F32x16 largest = zero();
    F32x16 scaled[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const F32x16 weight = load(block.scores + r * kBlock + v * kVector);
      const F32x16 scale = whole ? terms.scales[v] : seen_lanes(keys, v, terms.scales[v]);
      const F32x16 value = whole ? terms.middles[v] : seen_lanes(keys, v, terms.middles[v]);
      scaled[v] = mul(weight, scale);
      rest = fma(weight, value, rest);
      largest = max(largest, magnitude(scaled[v]));
    }
    const Int16Step of(reduce_max(largest));
    U32x16 integers[kVectors];
    F32x16 sum = zero();
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      integers[v] = to_int(mul(scaled[v], broadcast(of.inverse)));
      sum = add(sum, to_float(integers[v]));
    }
    std::uint32_t* pairs = block.weights + r * kBlock / 2;
    store_u32(pairs, int16_pairs(integers[0], integers[1]));
    store_u32(pairs + kVector, int16_pairs(integers[2], integers[3]));
    weights.steps[r] = of.step;
    weights.rests[r] = reduce_add(fma(sum, broadcast(-middle_code(codes.bits) * of.step), rest));
  }
  return weights;
}

#endif

}  // namespace saker::kernels::SAKER_ISA
