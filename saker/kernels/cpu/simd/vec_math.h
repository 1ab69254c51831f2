// SPDX-License-Identifier: Apache-2.0
#pragma once

// Elementary functions on F32x16, by the same steps in every instruction set. A lane's bits depend
// on that lane only.

#include "saker/kernels/cpu/simd/vec.h"

namespace saker::kernels::SAKER_ISA {

// 2^n for integer lanes -126 <= n <= 127.
inline F32x16 power_of_two(U32x16 n) {
  return as_float(shift_left<23>(add_u32(n, broadcast_u32(127))));
}

// e^x with a relative error below 2^-22. It is 0 below -104, infinity above 88.73, NaN for NaN.
// With x = n ln 2 + r and |r| <= ln 2 / 2, e^r is its Taylor polynomial of degree 7 (next term
// below 2^-26 relative).
inline F32x16 exp(F32x16 x) {
  const F32x16 bounded = min(broadcast(89.0F), max(broadcast(-105.0F), x));
  const F32x16 magic = broadcast(0x1.8p23F);  // Adding it rounds to an integer in the low bits.
  const F32x16 shifted = add(mul(bounded, broadcast(0x1.715476p0F)), magic);
  const F32x16 n = sub(shifted, magic);
  // ln 2 in two parts; n times the first is exact.
  F32x16 r = fma(n, broadcast(-0x1.62e4p-1F), bounded);
  r = fma(n, broadcast(-0x1.7f7d1cp-20F), r);
  F32x16 p = broadcast(1.0F / 5040);
  p = fma(p, r, broadcast(1.0F / 720));
  p = fma(p, r, broadcast(1.0F / 120));
  p = fma(p, r, broadcast(1.0F / 24));
  p = fma(p, r, broadcast(1.0F / 6));
  p = fma(p, r, broadcast(0.5F));
  p = fma(p, r, broadcast(1.0F));
  p = fma(p, r, broadcast(1.0F));
  // Two factors give 2^n, since n may exceed the range of exponents.
  const U32x16 whole = sub_u32(as_u32(shifted), as_u32(magic));
  const U32x16 half = shift_right_signed<1>(whole);
  return mul(mul(p, power_of_two(half)), power_of_two(sub_u32(whole, half)));
}

}  // namespace saker::kernels::SAKER_ISA
