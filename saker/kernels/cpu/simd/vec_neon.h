// SPDX-License-Identifier: Apache-2.0
#pragma once

// vec.h for ARMv8-A, with BF16 where the set has it.

#include "saker/kernels/cpu/simd/vec_quarters.h"

#include <arm_neon.h>

#include <cstdint>

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define SAKER_BF16_DOT
#endif

namespace saker::kernels::SAKER_ISA {

inline constexpr bool kFusedMultiplyAdd = true;
#if defined(SAKER_BF16_DOT)
inline constexpr bool kBf16Dot = true;
#else
inline constexpr bool kBf16Dot = false;
#endif

inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return each_part<F32x16>(
      [](F32x4 x, F32x4 y, F32x4 z) { return (F32x4)vfmaq_f32(z, x, y); }, a, b, c
  );
}

inline F32x16 square_root(F32x16 v) {
  return each_part<F32x16>([](F32x4 x) { return (F32x4)vsqrtq_f32(x); }, v);
}

inline F32x16 look_up(const float (&table)[16], U32x16 v) {
  const uint8x16x4_t bytes = vld1q_u8_x4(reinterpret_cast<const std::uint8_t*>(table));
  return each_part<F32x16>(
      [&](U32x4 index) {
        // Bytes 4 i to 4 i + 3 are value i.
        const U32x4 places = (index & 15U) * 0x04040404U + 0x03020100U;
        return (F32x4)vqtbl4q_u8(bytes, (uint8x16_t)places);
      },
      v
  );
}

inline U32x16 look_up_bytes(const std::uint8_t (&table)[16], U32x16 v) {
  const uint8x16_t bytes = vld1q_u8(table);
  return each_part<U32x16>(
      [&](U32x4 names) { return (U32x4)vqtbl1q_u8(bytes, (uint8x16_t)names); }, v
  );
}

inline F32x16 load_f16(const std::uint16_t* p) {
  const auto part = [p](int i) {
    return (F32x4)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i)));
  };
  return {{part(0), part(1), part(2), part(3)}};
}

#if defined(SAKER_BF16_DOT)
inline U32x16 look_up_pairs(const std::uint16_t (&table)[16], U32x16 v) {
  const uint8x16x2_t bytes = vld1q_u8_x2(reinterpret_cast<const std::uint8_t*>(table));
  return each_part<U32x16>(
      [&](U32x4 index) {
        // Bytes 2 i and 2 i + 1 are value i.
        const U32x4 places = (index & 0x000f000fU) * 0x0202U + 0x01000100U;
        return (U32x4)vqtbl2q_u8(bytes, (uint8x16_t)places);
      },
      v
  );
}

inline F32x16 dot_bf16_pairs(F32x16 acc, U32x16 a, U32x16 b) {
  return each_part<F32x16>(
      [](F32x4 sum, U32x4 x, U32x4 y) {
        return (F32x4)vbfdotq_f32(sum, vreinterpretq_bf16_u32(x), vreinterpretq_bf16_u32(y));
      },
      acc,
      a,
      b
  );
}

inline U32x16 bf16_pairs(F32x16 first, F32x16 second) {
  const U32x16 a = to_bf16(first);
  const U32x16 b = to_bf16(second);
  const auto neighbours = [](U32x4 low, U32x4 high) {
    return vuzp1q_u32(low, high) | vuzp2q_u32(low, high) << 16;
  };
  return {{
      neighbours(a.part[0], a.part[1]),
      neighbours(a.part[2], a.part[3]),
      neighbours(b.part[0], b.part[1]),
      neighbours(b.part[2], b.part[3]),
  }};
}

inline F32x16 round_to_bf16(F32x16 a) {
  return as_float(shift_left<16>(to_bf16(a)));
}
#endif

}  // namespace saker::kernels::SAKER_ISA
