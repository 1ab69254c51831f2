// SPDX-License-Identifier: Apache-2.0
#pragma once

// Codes and scales of quantized checkpoints, one value at a time: the definitions that packing
// relies on. E2M1, E4M3 and E8M0 are the OCP microscaling formats
// (https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf).

#include "saker/kernels/layout/weight_format.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace saker::kernels {

// Sign, two bits of exponent, one of fraction.
constexpr float e2m1_value(unsigned code) {
  constexpr float kMagnitudes[8] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  const float magnitude = kMagnitudes[code & 7U];
  return (code & 8U) != 0 ? -magnitude : magnitude;
}

// Sign, four bits of exponent, three of fraction; no infinity, all ones are NaN.
constexpr float e4m3_value(unsigned code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80U) << 24;
  const std::uint32_t magnitude = code & 0x7fU;
  if (magnitude == 0x7fU) {
    return std::bit_cast<float>(sign | 0x7fc00000U);
  }
  const float scaled = std::bit_cast<float>(magnitude << 20) * 0x1p120F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

// A power of two: 2^(code - 127); all ones are NaN.
constexpr float e8m0_value(unsigned code) {
  if (code == 0xffU) {
    return std::bit_cast<float>(0x7fc00000U);
  }
  return code == 0 ? 0x1p-127F : std::bit_cast<float>(static_cast<std::uint32_t>(code) << 23);
}

// A group's scale: E4M3 for nvfp4, else E8M0. It is NaN also if one of the group's codes is, since
// products take such a code for a number.
inline float group_scale(const WeightFormat& format, const std::byte* codes, std::byte scale) {
  const auto code = std::to_integer<unsigned>(scale);
  if (format.kind == WeightKind::kNvfp4) {
    return e4m3_value(code);
  }
  bool is_nan = false;
  for (int k = 0; format.kind == WeightKind::kMxfp8 && k < format.group_size; ++k) {
    is_nan |= (std::to_integer<unsigned>(codes[k]) & 0x7fU) == 0x7fU;
  }
  return e8m0_value(is_nan ? 0xffU : code);
}

// The upper half of a value's float32.
constexpr std::uint16_t bf16_of(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

inline float bf16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Sign, five bits of exponent, ten of fraction.
inline float f16_value(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= 0x7c00U) {
    return std::bit_cast<float>(sign | 0x7f800000U | magnitude << 13);
  }
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

template <typename Value>
Value load_unaligned(const std::byte* at) {
  Value value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace saker::kernels
