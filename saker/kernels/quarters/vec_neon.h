// SPDX-License-Identifier: Apache-2.0
#pragma once

// vec.h for ARMv8-A, and with BF16 where the set has it.

#include "saker/kernels/quarters/vec_quarters.h"

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

// Pairs of the 32 bf16 in the low halves of two vectors' lanes, as to_bf16 gives them: neighbours
// go together.
template <int kDistance>
[[gnu::always_inline]] inline U32x16 pair_bf16(U32x16 first, U32x16 second) {
  static_assert(kDistance == 1);
  const auto pairs = [](U32x4 a, U32x4 b) {
    const U32x4 low = vuzp1q_u32(a, b);
    const U32x4 high = vuzp2q_u32(a, b);
    return low | high << 16;
  };
  return {{
      pairs(first.part[0], first.part[1]),
      pairs(first.part[2], first.part[3]),
      pairs(second.part[0], second.part[1]),
      pairs(second.part[2], second.part[3]),
  }};
}
#endif

}  // namespace saker::kernels::SAKER_ISA
