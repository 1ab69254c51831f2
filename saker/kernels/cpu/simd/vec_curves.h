// SPDX-License-Identifier: Apache-2.0
#pragma once

// tanh, the logistic function and erfc on F32x16, by the same steps in every instruction set. A
// lane's bits depend on that lane only. The polynomials are minimax fits for these ranges.

#include "saker/kernels/cpu/simd/vec.h"
#include "saker/kernels/cpu/simd/vec_math.h"

namespace saker::kernels::SAKER_ISA {

// a where the sign bit of v is set, else b.
inline F32x16 where_negative(F32x16 v, F32x16 a, F32x16 b) {
  const U32x16 mask = shift_right_signed<31>(as_u32(v));
  const U32x16 rest = sub_u32(broadcast_u32(0xffffffffU), mask);
  return as_float(bit_or(bit_and(as_u32(a), mask), bit_and(as_u32(b), rest)));
}

inline F32x16 absolute(F32x16 v) {
  return as_float(bit_and(as_u32(v), broadcast_u32(0x7fffffffU)));
}

// x / (1 + e^-y): x times the logistic function of y.
inline F32x16 logistic_times(F32x16 x, F32x16 y) {
  return div(x, add(broadcast(1.0F), exp(sub(zero(), y))));
}

// Relative error below 2^-22. Near 0 a polynomial of x^2 (fit error 4e-9), else 1 - 2 / (e^2|x| +
// 1).
inline F32x16 tanh(F32x16 x) {
  const F32x16 size = absolute(x);
  const F32x16 square = mul(x, x);
  F32x16 p = broadcast(-0x1.72eecap-8F);
  p = fma(p, square, broadcast(0x1.515cdap-6F));
  p = fma(p, square, broadcast(-0x1.b8153ep-5F));
  p = fma(p, square, broadcast(0x1.11058p-3F));
  p = fma(p, square, broadcast(-0x1.555524p-2F));
  const F32x16 near = fma(mul(p, square), x, x);
  const F32x16 one = broadcast(1.0F);
  const F32x16 far = sub(one, div(broadcast(2.0F), add(exp(add(size, size)), one)));
  const U32x16 sign = bit_and(as_u32(x), broadcast_u32(0x80000000U));
  const F32x16 signed_far = as_float(bit_or(as_u32(far), sign));
  return where_nan(x, x, where_negative(sub(size, broadcast(0.625F)), near, signed_far));
}

// 1 - erf(x) for x >= 0, absolute error below 2e-7: t P(t) e^(-x^2) with t = 1 / (1 + 0.4 x), fit
// error 7e-8 relative.
inline F32x16 erfc_of_positive(F32x16 x) {
  const F32x16 t = div(broadcast(1.0F), fma(x, broadcast(0.4F), broadcast(1.0F)));
  F32x16 p = broadcast(0x1.5f488cp-5F);
  p = fma(p, t, broadcast(-0x1.2fa374p-3F));
  p = fma(p, t, broadcast(0x1.9b6ac2p-4F));
  p = fma(p, t, broadcast(0x1.1b0452p-4F));
  p = fma(p, t, broadcast(0x1.7c2716p-4F));
  p = fma(p, t, broadcast(0x1.80acdcp-3F));
  p = fma(p, t, broadcast(0x1.a060d2p-3F));
  p = fma(p, t, broadcast(0x1.cf5930p-3F));
  p = fma(p, t, broadcast(0x1.ce1f68p-3F));
  return mul(mul(p, t), exp(sub(zero(), mul(x, x))));
}

}  // namespace saker::kernels::SAKER_ISA
