// SPDX-License-Identifier: Apache-2.0
#pragma once

// Codes of E4M3 as float32.

#include "saker/kernels/cpu/vec.h"

namespace saker::kernels::SAKER_ISA {

// Of the upper bytes of lanes, whatever lies below. The code of NaN counts as 480: see group_scale
// in pack/codes.h.
[[gnu::always_inline]] inline F32x16 e4m3_values(U32x16 v) {
  const U32x16 magnitude = shift_right<4>(bit_and(v, broadcast_u32(0x7f000000U)));
  const F32x16 normal = as_float(add_u32(magnitude, broadcast_u32(120U << 23U)));
  // Where the exponent is 0 there is no leading one. This takes it away; of all others it is more.
  const F32x16 subnormal = fma(broadcast(2.0F), normal, broadcast(-0x1p-6F));
  const U32x16 sign = bit_and(v, broadcast_u32(0x80000000U));
  return as_float(bit_or(as_u32(min(normal, subnormal)), sign));
}

}  // namespace saker::kernels::SAKER_ISA
