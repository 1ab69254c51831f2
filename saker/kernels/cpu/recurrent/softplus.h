// SPDX-License-Identifier: Apache-2.0
#pragma once

// softplus on F32x16, by the same steps in every instruction set. A lane's bits depend on that lane
// only.

#include "saker/kernels/cpu/simd/vec.h"
#include "saker/kernels/cpu/simd/vec_curves.h"
#include "saker/kernels/cpu/simd/vec_math.h"

namespace saker::kernels::SAKER_ISA {

// log(1 + e^x) = max(x, 0) + log(1 + t) with t = e^-|x|; absolute error below 2^-22 times the value
// plus 2^-24. log(1 + t) = 2 atanh(s) with s = t / (2 + t) <= 1/3, by its Taylor polynomial (next
// term below 2^-25 relative).
inline F32x16 softplus(F32x16 x) {
  const F32x16 t = exp(sub(zero(), absolute(x)));
  const F32x16 s = div(t, add(broadcast(2.0F), t));
  const F32x16 square = mul(s, s);
  F32x16 p = broadcast(1.0F / 13);
  p = fma(p, square, broadcast(1.0F / 11));
  p = fma(p, square, broadcast(1.0F / 9));
  p = fma(p, square, broadcast(1.0F / 7));
  p = fma(p, square, broadcast(1.0F / 5));
  p = fma(p, square, broadcast(1.0F / 3));
  p = fma(p, square, broadcast(1.0F));
  return fma(mul(broadcast(2.0F), s), p, max(x, zero()));
}

}  // namespace saker::kernels::SAKER_ISA
