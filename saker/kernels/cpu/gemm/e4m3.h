// SPDX-License-Identifier: Apache-2.0
#pragma once

// Codes of E4M3 as float32.

#include "saker/kernels/cpu/simd/vec.h"

namespace saker::kernels::SAKER_ISA {

// Values of the codes in the upper bytes of lanes; the bits below are ignored. The NaN code gives
// 480: see group_scale in packing/codes.h.
[[gnu::always_inline]] inline F32x16 e4m3_values(U32x16 v) {
  const U32x16 magnitude = shift_right<4>(bit_and(v, broadcast_u32(0x7f000000U)));
  const F32x16 normal = as_float(add_u32(magnitude, broadcast_u32(120U << 23U)));
  // With an exponent of 0 there is no leading one. This subtracts it; for all other codes the
  // result is larger.
  const F32x16 subnormal = fma(broadcast(2.0F), normal, broadcast(-0x1p-6F));
  const U32x16 sign = bit_and(v, broadcast_u32(0x80000000U));
  return as_float(bit_or(as_u32(min(normal, subnormal)), sign));
}

}  // namespace saker::kernels::SAKER_ISA
