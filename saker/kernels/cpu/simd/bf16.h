// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scalar bf16 values, as their bits.

#include <bit>
#include <cstdint>

namespace saker::kernels {

// Rounds to nearest even; a NaN stays one.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {
    return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  }
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

// Both values rounded to bf16, the first in the lower half.
inline std::uint32_t bf16_pair(float first, float second) {
  return static_cast<std::uint32_t>(to_bf16(second)) << 16 | to_bf16(first);
}

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace saker::kernels
