// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set.
#include "tests/kernels/vec_operations.h"

#include "saker/kernels/cpu/simd/vec.h"

namespace saker::kernels::SAKER_ISA {
namespace {

void give(F32x16 v, VecOutput& out) {
  store_u32(out.lanes, as_u32(v));
}

template <F32x16 (*function)(F32x16)>
void of_x(const VecInput& in, VecOutput& out) {
  give(function(load(in.x)), out);
}

template <F32x16 (*function)(F32x16, F32x16)>
void of_xy(const VecInput& in, VecOutput& out) {
  give(function(load(in.x), load(in.y)), out);
}

template <F32x16 (*function)(F32x16, F32x16, F32x16)>
void of_xyz(const VecInput& in, VecOutput& out) {
  give(function(load(in.x), load(in.y), load(in.z)), out);
}

template <U32x16 (*function)(U32x16)>
void of_a(const VecInput& in, VecOutput& out) {
  store_u32(out.lanes, function(load_u32(in.a)));
}

template <U32x16 (*function)(U32x16, U32x16)>
void of_ab(const VecInput& in, VecOutput& out) {
  store_u32(out.lanes, function(load_u32(in.a), load_u32(in.b)));
}

template <F32x16 (*function)(U32x16)>
void float_of_a(const VecInput& in, VecOutput& out) {
  give(function(load_u32(in.a)), out);
}

template <F32x16 (*function)(const std::uint16_t*)>
void of_halves(const VecInput& in, VecOutput& out) {
  give(function(in.halves), out);
}

template <float (*function)(F32x16)>
void reduce(const VecInput& in, VecOutput& out) {
  give(broadcast(function(load(in.x))), out);
}

F32x16 to_float_of_24_bits(U32x16 v) {
  return to_float(shift_right<8>(v));
}

void run_load_part(const VecInput& in, VecOutput& out) {
  give(load_part(in.x, in.n), out);
}

void run_load_folded(const VecInput& in, VecOutput& out) {
  store_u32(out.lanes, load_folded(in.a));
}

void run_store(const VecInput& in, VecOutput& out) {
  float lanes[16];
  store(lanes, load(in.x));
  __builtin_memcpy(out.lanes, lanes, sizeof(lanes));
}

void run_store_part(const VecInput& in, VecOutput& out) {
  float lanes[16];
  __builtin_memcpy(lanes, in.y, sizeof(lanes));
  store_part(lanes, load(in.x), in.n);
  __builtin_memcpy(out.lanes, lanes, sizeof(lanes));
}

void run_store_bf16(const VecInput& in, VecOutput& out) {
  std::uint16_t halves[16];
  store_bf16(halves, load(in.x));
  for (int i = 0; i < 16; ++i) {
    out.lanes[i] = halves[i];
  }
}

void run_look_up(const VecInput& in, VecOutput& out) {
  give(look_up(in.x, load_u32(in.a)), out);
}

void run_look_up_bytes(const VecInput& in, VecOutput& out) {
  const U32x16 names = bit_and(load_u32(in.a), broadcast_u32(0x0f0f0f0fU));
  store_u32(out.lanes, look_up_bytes(kCodeTable, names));
}

void run_constants(const VecInput& in, VecOutput& out) {
  give(add(zero(), as_float(broadcast_u32(in.a[0]))), out);
}

constexpr bool kPairTables = kBf16Dot && !kInt16Dot;

template <typename Words>
void run_look_up_pairs(const VecInput& in, VecOutput& out) {
  if constexpr (kPairTables) {
    const Words index = load_u32(in.a);
    store_u32(out.lanes, look_up_pairs(in.halves, index));
  }
}

template <int n, typename Words>
void run_look_up_integers(const VecInput& in, VecOutput& out) {
  if constexpr (kInt16Dot) {
    const Words index = load_u32(in.a);
    store_u32(out.lanes, look_up_integers<n>(kByteTable, index));
  }
}

template <typename Floats>
void run_dot_bf16_pairs(const VecInput& in, VecOutput& out) {
  if constexpr (kBf16Dot) {
    const Floats z = load(in.z);
    give(dot_bf16_pairs(z, load_u32(in.a), load_u32(in.b)), out);
  }
}

template <typename Floats>
void run_bf16_pairs(const VecInput& in, VecOutput& out) {
  if constexpr (kBf16Dot) {
    const Floats x = load(in.x);
    store_u32(out.lanes, bf16_pairs(x, load(in.y)));
  }
}

template <typename Floats>
void run_round_to_bf16(const VecInput& in, VecOutput& out) {
  if constexpr (kBf16Dot) {
    const Floats x = load(in.x);
    give(round_to_bf16(x), out);
  }
}

template <typename Floats>
void run_to_int(const VecInput& in, VecOutput& out) {
  if constexpr (kInt16Dot) {
    const Floats x = load(in.x);
    store_u32(out.lanes, to_int(x));
  }
}

template <typename Words>
void run_int16_pairs(const VecInput& in, VecOutput& out) {
  if constexpr (kInt16Dot) {
    const Words a = load_u32(in.a);
    store_u32(
        out.lanes, int16_pairs(shift_right_signed<16>(a), shift_right_signed<16>(load_u32(in.b)))
    );
  }
}

template <typename Words>
void run_dot_int16_pairs(const VecInput& in, VecOutput& out) {
  if constexpr (kInt16Dot) {
    const Words acc = as_u32(load(in.z));
    store_u32(out.lanes, dot_int16_pairs(acc, load_u32(in.a), load_u32(in.b)));
  }
}

template <typename Words>
void run_dot_int16_sums(const VecInput& in, VecOutput& out) {
  if constexpr (kWinogradDot) {
    const Words acc = as_u32(load(in.z));
    const Words a = load_u32(in.a);
    const Words b = load_u32(in.b);
    store_u32(out.lanes, dot_int16_sums(acc, a, b, as_u32(load(in.x)), as_u32(load(in.y))));
  }
}

constexpr VecOperation kOperations[] = {
    {"store", run_store},
    {"load_part", run_load_part},
    {"store_part", run_store_part},
    {"load_folded", run_load_folded},
    {"load_bf16", of_halves<load_bf16>},
    {"load_f16", of_halves<load_f16>},
    {"store_bf16", run_store_bf16},
    {"constants", run_constants},
    {"look_up", run_look_up},
    {"look_up_bytes", run_look_up_bytes},
    {"add", of_xy<add>},
    {"sub", of_xy<sub>},
    {"mul", of_xy<mul>},
    {"div", of_xy<div>},
    {"fma", of_xyz<fma>},
    {"min", of_xy<min>},
    {"max", of_xy<max>},
    {"square_root", of_x<square_root>},
    {"add_u32", of_ab<add_u32>},
    {"sub_u32", of_ab<sub_u32>},
    {"bit_and", of_ab<bit_and>},
    {"bit_or", of_ab<bit_or>},
    {"shift_left", of_a<shift_left<5>>},
    {"shift_right", of_a<shift_right<5>>},
    {"shift_right_signed", of_a<shift_right_signed<5>>},
    {"to_float", float_of_a<to_float_of_24_bits>},
    {"even_bf16", float_of_a<even_bf16>},
    {"odd_bf16", float_of_a<odd_bf16>},
    {"bf16_of_bytes<0>", of_a<bf16_of_bytes<0>>},
    {"bf16_of_bytes<1>", of_a<bf16_of_bytes<1>>},
    {"reduce_add", reduce<reduce_add>},
    {"reduce_max", reduce<reduce_max>},
    {"where_nan", of_xyz<where_nan>},
    {"to_int", kInt16Dot ? run_to_int<F32x16> : nullptr},
    {"int16_pairs", kInt16Dot ? run_int16_pairs<U32x16> : nullptr},
    {"dot_int16_pairs", kInt16Dot ? run_dot_int16_pairs<U32x16> : nullptr},
    {"dot_int16_sums", kWinogradDot ? run_dot_int16_sums<U32x16> : nullptr},
    {"look_up_integers<0>", kInt16Dot ? run_look_up_integers<0, U32x16> : nullptr},
    {"look_up_integers<1>", kInt16Dot ? run_look_up_integers<1, U32x16> : nullptr},
    {"look_up_integers<2>", kInt16Dot ? run_look_up_integers<2, U32x16> : nullptr},
    {"look_up_integers<3>", kInt16Dot ? run_look_up_integers<3, U32x16> : nullptr},
    {"look_up_pairs", kPairTables ? run_look_up_pairs<U32x16> : nullptr},
    {"dot_bf16_pairs", kBf16Dot ? run_dot_bf16_pairs<F32x16> : nullptr},
    {"bf16_pairs", kBf16Dot ? run_bf16_pairs<F32x16> : nullptr},
    {"round_to_bf16", kBf16Dot ? run_round_to_bf16<F32x16> : nullptr},
};

}  // namespace

extern const VecOperations vec_operations;
const VecOperations vec_operations{
    kOperations,
    sizeof(kOperations) / sizeof(kOperations[0]),
    kFusedMultiplyAdd,
};

}  // namespace saker::kernels::SAKER_ISA
