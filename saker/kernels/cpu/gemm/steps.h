// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rounds numbers to whole multiples of a step, which follows from the largest magnitude.

#include "saker/kernels/cpu/simd/vec.h"

namespace saker::kernels::SAKER_ISA {

// NaN in lanes that are not finite, else 0.
[[gnu::always_inline]] inline F32x16 flaws(F32x16 a) {
  return mul(a, zero());
}

[[gnu::always_inline]] inline F32x16 magnitude(F32x16 a) {
  return as_float(bit_and(as_u32(a), broadcast_u32(0x7fffffffU)));
}

// The largest magnitude of all lanes that were added; NaN if one was not finite.
class Largest {
 public:
  [[gnu::always_inline]] void add(F32x16 lanes) {
    top_ = max(top_, magnitude(lanes));
    flaw_ = SAKER_ISA::add(flaw_, flaws(lanes));
  }

  F32x16 by_lane() const { return SAKER_ISA::add(top_, flaw_); }

  // Undefined if a lane was not finite.
  float top() const { return reduce_max(top_); }

  // NaN if a lane was not finite, else 0.
  float flaw() const { return reduce_add(flaw_); }

  float of_all() const { return top() + flaw(); }

 private:
  F32x16 top_ = zero();
  F32x16 flaw_ = zero();
};

#if defined(SAKER_INT16_DOT)
// Such an integer splits into two signed bytes, the lower one in [-128, 127]. Its sum with an 8-bit
// code fits 16 bits.
inline constexpr float kLargestInt16 = 127.0F * 256.0F;

// The step for integers that represent numbers up to `largest`, and its inverse. Tiny numbers
// become zeros, so that both are finite.
struct Int16Step {
  float step;
  float inverse;

  explicit Int16Step(float largest) {
    const float bounded = largest > 0x1p-96F ? largest : 0x1p-96F;
    step = bounded / kLargestInt16;
    inverse = kLargestInt16 / bounded;
  }
};

// As above, per lane.
struct Int16Steps {
  F32x16 step;
  F32x16 inverse;

  explicit Int16Steps(F32x16 largest) {
    const F32x16 bounded = max(largest, broadcast(0x1p-96F));
    step = div(bounded, broadcast(kLargestInt16));
    inverse = div(broadcast(kLargestInt16), bounded);
  }
};
#endif

}  // namespace saker::kernels::SAKER_ISA
