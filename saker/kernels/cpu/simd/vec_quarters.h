// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of vec.h that names no instruction: sixteen lanes as four vectors of four, by the
// compilers' vector extension (SSE2, NEON or plain code).

#include <cstdint>

namespace saker::kernels::SAKER_ISA {

using F32x4 = float __attribute__((vector_size(16)));
using U32x4 = std::uint32_t __attribute__((vector_size(16)));
using I32x4 = std::int32_t __attribute__((vector_size(16)));
using U16x4 = std::uint16_t __attribute__((vector_size(8)));

struct F32x16 {
  F32x4 part[4];
};

struct U32x16 {
  U32x4 part[4];
};

// Applies `function` to each part of the operands.
template <typename Result, typename Function, typename... Args>
[[gnu::always_inline]] inline Result each_part(Function function, const Args&... args) {
  return {{
      function(args.part[0]...),
      function(args.part[1]...),
      function(args.part[2]...),
      function(args.part[3]...),
  }};
}

inline F32x16 as_float(U32x16 v) {
  return each_part<F32x16>([](U32x4 a) { return (F32x4)a; }, v);
}

inline U32x16 as_u32(F32x16 v) {
  return each_part<U32x16>([](F32x4 a) { return (U32x4)a; }, v);
}

inline F32x16 broadcast(float value) {
  const F32x4 v = {value, value, value, value};
  return {{v, v, v, v}};
}

inline U32x16 broadcast_u32(std::uint32_t value) {
  const U32x4 v = {value, value, value, value};
  return {{v, v, v, v}};
}

inline F32x16 zero() {
  return broadcast(0.0F);
}

inline F32x16 load(const float* p) {
  F32x16 v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

inline void store(float* p, F32x16 v) {
  __builtin_memcpy(p, &v, sizeof(v));
}

inline U32x16 load_u32(const std::uint32_t* p) {
  U32x16 v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

inline U32x16 load_folded(const std::uint32_t* p) {
  U32x4 words[2];
  __builtin_memcpy(words, p, sizeof(words));
  return {{words[0], words[1], words[0] >> 8, words[1] >> 8}};
}

inline void store_u32(std::uint32_t* p, U32x16 v) {
  __builtin_memcpy(p, &v, sizeof(v));
}

inline F32x16 load_part(const float* p, int n) {
  float lanes[16] = {};
  for (int i = 0; i < n; ++i) {
    lanes[i] = p[i];
  }
  return load(lanes);
}

inline void store_part(float* p, F32x16 v, int n) {
  float lanes[16];
  store(lanes, v);
  for (int i = 0; i < n; ++i) {
    p[i] = lanes[i];
  }
}

inline F32x16 add(F32x16 a, F32x16 b) {
  return each_part<F32x16>([](F32x4 x, F32x4 y) { return x + y; }, a, b);
}

inline F32x16 sub(F32x16 a, F32x16 b) {
  return each_part<F32x16>([](F32x4 x, F32x4 y) { return x - y; }, a, b);
}

inline F32x16 mul(F32x16 a, F32x16 b) {
  return each_part<F32x16>([](F32x4 x, F32x4 y) { return x * y; }, a, b);
}

inline F32x16 div(F32x16 a, F32x16 b) {
  return each_part<F32x16>([](F32x4 x, F32x4 y) { return x / y; }, a, b);
}

// Bits of x where the mask is all ones, of y where it is zero.
inline F32x4 select_part(I32x4 mask, F32x4 x, F32x4 y) {
  return (F32x4)(((I32x4)x & mask) | ((I32x4)y & ~mask));
}

inline F32x16 min(F32x16 a, F32x16 b) {
  return each_part<F32x16>([](F32x4 x, F32x4 y) { return select_part(x < y, x, y); }, a, b);
}

inline F32x16 max(F32x16 a, F32x16 b) {
  return each_part<F32x16>([](F32x4 x, F32x4 y) { return select_part(x > y, x, y); }, a, b);
}

inline F32x16 where_nan(F32x16 v, F32x16 a, F32x16 b) {
  return each_part<F32x16>(
      [](F32x4 x, F32x4 y, F32x4 z) { return select_part(x != x, y, z); }, v, a, b
  );
}

inline U32x16 add_u32(U32x16 a, U32x16 b) {
  return each_part<U32x16>([](U32x4 x, U32x4 y) { return x + y; }, a, b);
}

inline U32x16 sub_u32(U32x16 a, U32x16 b) {
  return each_part<U32x16>([](U32x4 x, U32x4 y) { return x - y; }, a, b);
}

inline U32x16 bit_and(U32x16 a, U32x16 b) {
  return each_part<U32x16>([](U32x4 x, U32x4 y) { return x & y; }, a, b);
}

inline U32x16 bit_or(U32x16 a, U32x16 b) {
  return each_part<U32x16>([](U32x4 x, U32x4 y) { return x | y; }, a, b);
}

template <int n>
inline U32x16 shift_left(U32x16 v) {
  return each_part<U32x16>([](U32x4 x) { return x << n; }, v);
}

template <int n>
inline U32x16 shift_right(U32x16 v) {
  return each_part<U32x16>([](U32x4 x) { return x >> n; }, v);
}

template <int n>
inline U32x16 shift_right_signed(U32x16 v) {
  return each_part<U32x16>([](U32x4 x) { return (U32x4)((I32x4)x >> n); }, v);
}

inline F32x16 to_float(U32x16 v) {
  return each_part<F32x16>([](U32x4 x) { return __builtin_convertvector((I32x4)x, F32x4); }, v);
}

inline F32x16 even_bf16(U32x16 v) {
  return as_float(shift_left<16>(v));
}

inline F32x16 odd_bf16(U32x16 v) {
  return as_float(bit_and(v, broadcast_u32(0xffff0000U)));
}

inline U32x16 load_u16(const std::uint16_t* p) {
  U16x4 halves[4];
  __builtin_memcpy(halves, p, sizeof(halves));
  return {{
      __builtin_convertvector(halves[0], U32x4),
      __builtin_convertvector(halves[1], U32x4),
      __builtin_convertvector(halves[2], U32x4),
      __builtin_convertvector(halves[3], U32x4),
  }};
}

inline F32x16 load_bf16(const std::uint16_t* p) {
  return as_float(shift_left<16>(load_u16(p)));
}

// The bf16 nearest to each lane, in the low half of each lane.
inline U32x16 to_bf16(F32x16 v) {
  const U32x16 bits = as_u32(v);
  const U32x16 odd = bit_and(shift_right<16>(bits), broadcast_u32(1));
  const U32x16 rounded = add_u32(add_u32(bits, broadcast_u32(0x7fffU)), odd);
  const U32x16 quiet = bit_or(bits, broadcast_u32(0x00400000U));
  return shift_right<16>(as_u32(where_nan(v, as_float(quiet), as_float(rounded))));
}

inline void store_bf16(std::uint16_t* p, F32x16 v) {
  const U32x16 bits = to_bf16(v);
  const U16x4 halves[4] = {
      __builtin_convertvector(bits.part[0], U16x4),
      __builtin_convertvector(bits.part[1], U16x4),
      __builtin_convertvector(bits.part[2], U16x4),
      __builtin_convertvector(bits.part[3], U16x4),
  };
  __builtin_memcpy(p, halves, sizeof(halves));
}

inline float reduce_add(F32x16 v) {
  const F32x4 half0 = v.part[0] + v.part[2];
  const F32x4 half1 = v.part[1] + v.part[3];
  const F32x4 sum = half0 + half1;
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

inline float reduce_max(F32x16 v) {
  const F32x4 half0 = select_part(v.part[0] > v.part[2], v.part[0], v.part[2]);
  const F32x4 half1 = select_part(v.part[1] > v.part[3], v.part[1], v.part[3]);
  const F32x4 top = select_part(half0 > half1, half0, half1);
  const float even = top[0] > top[2] ? top[0] : top[2];
  const float odd = top[1] > top[3] ? top[1] : top[3];
  return even > odd ? even : odd;
}

}  // namespace saker::kernels::SAKER_ISA
