// SPDX-License-Identifier: Apache-2.0
// No #pragma once: one source per instruction set includes this into that set's namespace, so that
// sets share no function.
//
// Vectors of floats as wide as the set allows, and their rounding to the dtypes of weights.

#include "saker/base/tensor.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels::SAKER_ISA {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kLanes = 16;
#elif defined(__AVX2__)
constexpr std::size_t kLanes = 8;
#else
constexpr std::size_t kLanes = 4;
#endif

using Floats [[gnu::vector_size(4 * kLanes)]] = float;
using Words [[gnu::vector_size(4 * kLanes)]] = std::uint32_t;
using Signed [[gnu::vector_size(4 * kLanes)]] = std::int32_t;
using Halves [[gnu::vector_size(2 * kLanes)]] = std::uint16_t;
using Bytes [[gnu::vector_size(kLanes)]] = std::uint8_t;

template <typename Value>
Value load(const void* from) {
  Value value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

template <typename Value>
void store(void* to, Value value) {
  __builtin_memcpy(to, &value, sizeof(value));
}

inline Floats all(float value) {
  return value - Floats{};
}

inline Words bits_of(Floats x) {
  return load<Words>(&x);
}

inline Floats floats_of(Words bits) {
  return load<Floats>(&bits);
}

inline Floats magnitude(Floats x) {
  return floats_of(bits_of(x) & 0x7fffffffU);
}

// To nearest, ties to even.
inline Words bf16_bits(Floats x) {
  const Words bits = bits_of(x);
  const Words rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
  return (bits & 0x7fffffffU) > 0x7f800000U ? 0x7fc0U + Words{} : rounded;
}

inline Words f16_bits(Floats x) {
  const Words sign = bits_of(x) >> 16 & 0x8000U;
  const Words bits = bits_of(x) & 0x7fffffffU;
  // The last place of a float in [0.5, 1) is that of the smallest halves.
  const Words small = bits_of(floats_of(bits) + 0.5F) - 0x3f000000U;
  Words rounded = ((bits + 0xfffU + (bits >> 13 & 1U)) >> 13) - (112U << 10);
  rounded = rounded > 0x7c00U ? 0x7c00U + Words{} : rounded;
  rounded = bits < 0x38800000U ? small : rounded;
  return sign | (bits > 0x7f800000U ? 0x7e00U + Words{} : rounded);
}

inline Floats from_f16(Words half) {
  const Words bits = half & 0x7fffU;
  const Words scaled = bits_of(floats_of(bits << 13) * 0x1p112F);
  const Words value = bits >= 0x7c00U ? 0x7f800000U | bits << 13 : scaled;
  return floats_of((half & 0x8000U) << 16 | value);
}

template <DType kDType>
Floats rounded(Floats x) {
  if constexpr (kDType == DType::kBFloat16) {
    return floats_of(bf16_bits(x) << 16);
  } else if constexpr (kDType == DType::kFloat16) {
    return from_f16(f16_bits(x));
  } else {
    return x;
  }
}

template <DType kDType>
float rounded_one(float x) {
  return rounded<kDType>(all(x))[0];
}

template <DType kDType>
constexpr std::size_t kBytes = kDType == DType::kFloat32 ? 4 : 2;

template <DType kDType>
Floats load_floats(const std::byte* from) {
  if constexpr (kDType == DType::kFloat32) {
    return load<Floats>(from);
  } else {
    const Words bits = __builtin_convertvector(load<Halves>(from), Words);
    return kDType == DType::kBFloat16 ? floats_of(bits << 16) : from_f16(bits);
  }
}

template <DType kDType>
void store_floats(Floats x, std::byte* to) {
  if constexpr (kDType == DType::kFloat32) {
    store(to, x);
  } else {
    const Words bits = kDType == DType::kBFloat16 ? bf16_bits(x) : f16_bits(x);
    store(to, __builtin_convertvector(bits, Halves));
  }
}

// One number, read into the first lane.
template <DType kDType>
float load_one(const std::byte* from) {
  alignas(Floats) std::byte lanes[sizeof(Floats)] = {};
  __builtin_memcpy(lanes, from, kBytes<kDType>);
  return load_floats<kDType>(lanes)[0];
}

template <DType kDType>
void store_one(float x, std::byte* to) {
  alignas(Floats) std::byte lanes[sizeof(Floats)];
  store_floats<kDType>(all(x), lanes);
  __builtin_memcpy(to, lanes, kBytes<kDType>);
}

}  // namespace
}  // namespace saker::kernels::SAKER_ISA
