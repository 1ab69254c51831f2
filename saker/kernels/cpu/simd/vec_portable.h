// SPDX-License-Identifier: Apache-2.0
#pragma once

// vec.h for any machine.

#include "saker/kernels/cpu/simd/vec_quarters.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr bool kFusedMultiplyAdd = false;
inline constexpr bool kBf16Dot = false;

inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return each_part<F32x16>([](F32x4 x, F32x4 y, F32x4 z) { return x * y + z; }, a, b, c);
}

inline F32x16 square_root(F32x16 v) {
  return each_part<F32x16>(
      [](F32x4 x) {
        return F32x4{
            __builtin_sqrtf(x[0]),
            __builtin_sqrtf(x[1]),
            __builtin_sqrtf(x[2]),
            __builtin_sqrtf(x[3]),
        };
      },
      v
  );
}

inline F32x16 look_up(const float (&table)[16], U32x16 v) {
  std::uint32_t indices[16];
  store_u32(indices, v);
  float lanes[16];
  for (int i = 0; i < 16; ++i) {
    lanes[i] = table[indices[i] & 15U];
  }
  return load(lanes);
}

inline U32x16 look_up_bytes(const std::uint8_t (&table)[16], U32x16 v) {
  std::uint8_t bytes[64];
  __builtin_memcpy(bytes, &v, sizeof(bytes));
  for (std::uint8_t& byte : bytes) {
    byte = table[byte & 15U];
  }
  U32x16 codes;
  __builtin_memcpy(&codes, bytes, sizeof(codes));
  return codes;
}

inline F32x16 load_f16(const std::uint16_t* p) {
  const U32x16 bits = load_u16(p);
  const U32x16 sign = shift_left<16>(bit_and(bits, broadcast_u32(0x8000U)));
  const U32x16 magnitude = shift_left<13>(bit_and(bits, broadcast_u32(0x7fffU)));
  // The exponent's bias differs by 112; multiplying also makes subnormal halves normal.
  const U32x16 finite = as_u32(mul(as_float(magnitude), broadcast(0x1p112F)));
  const U32x16 top = bit_or(magnitude, broadcast_u32(0x7f800000U));
  return each_part<F32x16>(
      [](U32x4 s, U32x4 m, U32x4 f, U32x4 t) {
        const F32x4 value = select_part((I32x4)m >= 0x7c00 << 13, (F32x4)t, (F32x4)f);
        return (F32x4)((U32x4)value | s);
      },
      sign,
      magnitude,
      finite,
      top
  );
}

}  // namespace saker::kernels::SAKER_ISA
