// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns scores of a block into softmax weights and raises the rows' states to their new maxima.

#include "saker/kernels/cpu/attention/products.h"
#include "saker/kernels/cpu/simd/vec_curves.h"
#include "saker/kernels/cpu/simd/vec_math.h"

namespace saker::kernels::SAKER_ISA {

// The maximum over no keys: finite, so that differences of maxima are never NaN.
inline constexpr float kFloor = -0x1.fffffep127F;

// e^x for x <= 0 with a relative error below 1.2e-7 + 1.4e-8 |x|. It is 0 below -88, NaN for NaN.
// With x log2(e) = n + r and |r| <= 1/2, 2^r is its minimax polynomial of degree 5 (relative error
// 7.5e-8).
[[gnu::always_inline]] inline F32x16 exp_of_negative(F32x16 x) {
  const F32x16 log2_e = broadcast(0x1.715476p0F);
  const F32x16 magic = broadcast(0x1.8p23F);  // Adding it rounds to an integer in the low bits.
  const F32x16 bounded = max(broadcast(-88.0F), x);
  const F32x16 shifted = fma(bounded, log2_e, magic);
  const F32x16 r = fma(bounded, log2_e, sub(magic, shifted));
  F32x16 p = broadcast(0x1.5c08e6p-10F);
  p = fma(p, r, broadcast(0x1.3d0c52p-7F));
  p = fma(p, r, broadcast(0x1.c6b6e4p-5F));
  p = fma(p, r, broadcast(0x1.ebf918p-3F));
  p = fma(p, r, broadcast(0x1.62e428p-1F));
  p = fma(p, r, broadcast(0x1.000002p0F));
  // 2^n; the bits of 0 for n = -127.
  const U32x16 exponent = sub_u32(as_u32(shifted), sub_u32(as_u32(magic), broadcast_u32(127)));
  return mul(p, as_float(shift_left<23>(exponent)));
}

inline F32x16 capped(F32x16 score, float cap) {
  return mul(broadcast(cap), tanh(div(score, broadcast(cap))));
}

// Caps a row's scores, sets unseen ones to kFloor and returns the largest.
inline float top_score(const AttendShape& shape, const BlockKeys& keys, float* scores) {
  const bool whole = sees_whole_block(keys);
  F32x16 top = broadcast(kFloor);
  for (int v = 0; v < kBlock / kVector; ++v) {
    F32x16 score = load(scores + v * kVector);
    if (shape.softcap > 0) {
      score = capped(score, shape.softcap);
    }
    if (!whole) {
      const U32x16 mask = seen_mask(keys, v);
      const U32x16 hidden = sub_u32(broadcast_u32(0xffffffffU), mask);
      const U32x16 floor = bit_and(hidden, as_u32(broadcast(kFloor)));
      score = as_float(bit_or(bit_and(mask, as_u32(score)), floor));
    }
    if (!whole || shape.softcap > 0) {
      store(scores + v * kVector, score);
    }
    top = max(top, score);
  }
  return reduce_max(top);
}

// As above, for scores that are all seen and not capped.
[[gnu::always_inline]] inline float top_score(const float* scores) {
  const F32x16 first = max(load(scores), load(scores + kVector));
  const F32x16 last = max(load(scores + 2 * kVector), load(scores + 3 * kVector));
  return reduce_max(max(max(broadcast(kFloor), first), last));
}

// Raises row number `row` of the state to maximum `after`.
[[gnu::always_inline]] inline void raise_maximum(const State& state, int row, float after) {
  const float before = state.maxima[row];
  if (after == before) {
    return;  // A factor of exactly 1 would change no bit.
  }
  const F32x16 factor = exp_of_negative(broadcast(before - after));
  float* sum = state.sums + row * kVector;
  store(sum, mul(load(sum), factor));
  scale_row(state.values + row * state.stride, state.stride, factor);
  state.maxima[row] = after;
}

// Turns the scores of a group's rows into weights and passes them to Products::store_weights.
template <typename Products>
void apply_softmax(
    const AttendShape& shape, const Block& block, const RowGroup& group, const State& state
) {
  const bool plain = group.whole && shape.softcap <= 0;
  float tops[kAttendGroupRows];
  for (int r = 0; r < group.rows; ++r) {
    float* scores = block.scores + r * kBlock;
    tops[r] = plain ? top_score(scores) : top_score(shape, group.keys[r], scores);
  }
  for (int r = 0; r < group.rows; ++r) {
    const int row = group.first + r;
    const float before = state.maxima[row];
    raise_maximum(state, row, tops[r] > before ? tops[r] : before);
    const F32x16 maximum = broadcast(state.maxima[row]);
    const float* scores = block.scores + r * kBlock;
    F32x16 part[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      part[v] = exp_of_negative(sub(load(scores + v * kVector), maximum));
    }
    if (!group.whole) {
      for (int v = 0; v < 4; ++v) {
        part[v] = seen_lanes(group.keys[r], v, part[v]);
      }
    }
    float* sum = state.sums + row * kVector;
    store(sum, add(load(sum), add(add(part[0], part[1]), add(part[2], part[3]))));
    Products::store_weights(block, r, part);
  }
}

}  // namespace saker::kernels::SAKER_ISA
