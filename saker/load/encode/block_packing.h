// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers and codes as the bytes of GGUF's blocks, and the rounding of floats to codes. No value,
// not even NaN, makes a conversion undefined. Any thread.

#include "saker/base/tensor.h"
#include "saker/kernels/quantize/quantize_loops.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace saker::load::gguf {

// Adding it rounds to an integer, which is then in the low bits.
inline constexpr float kRoundingTerm = 0x1.8p+23F;

// The nearest integer, ties to even, if |x| <= 2^22. Other values give the integer that ggml gets:
// 23 bits of the rounded sum.
inline int nearest_integer(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x + kRoundingTerm);
  return static_cast<int>(bits & 0x7fffffU) - 0x400000;
}

// x without its fraction; 0 if |x| >= 2^22, or for NaN.
inline int truncated_integer(float x) {
  const bool in_range = std::abs(x) < 0x1p22F;
  return static_cast<int>(in_range ? x : 0.0F);
}

// The nearest integer, ties away from zero; 0 if |x| >= 2^22, or for NaN.
inline int rounded_integer(float x) {
  const float safe = std::abs(x) < 0x1p22F ? x : 0.0F;
  const int whole = static_cast<int>(safe);
  const float rest = safe - static_cast<float>(whole);
  return whole + static_cast<int>(rest >= 0.5F) - static_cast<int>(rest <= -0.5F);
}

inline void put_half(float value, std::byte* to) {
  kernels::quantize_loops().narrow(&value, DType::kFloat16, 1, to);
}

// The low nibbles of 2 * `count` codes: byte i holds codes i (low half) and i + count.
inline void put_nibbles(const std::uint8_t* codes, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = static_cast<std::byte>((codes[i] & 0x0FU) | (codes[i + count] & 0x0FU) << 4U);
  }
}

// Two bits of 128 codes, those above bit `shift`: byte i holds codes i, i + 32, i + 64, i + 96.
inline void put_bit_pairs(const std::uint8_t* codes, unsigned shift, std::byte* to) {
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned low = (codes[i] >> shift & 3U) | (codes[i + 32] >> shift & 3U) << 2U;
    const unsigned high = (codes[i + 64] >> shift & 3U) | (codes[i + 96] >> shift & 3U) << 2U;
    to[i] = static_cast<std::byte>(low | high << 4U);
  }
}

// Bit `bit` of 256 codes: bit g of byte i is that of code 32 * g + i.
inline void put_high_bits(const std::uint8_t* codes, unsigned bit, std::byte* to) {
  for (std::size_t i = 0; i < 32; ++i) {
    unsigned bits = 0;
    for (std::size_t group = 0; group < 8; ++group) {
      bits |= (codes[32 * group + i] >> bit & 1U) << group;
    }
    to[i] = static_cast<std::byte>(bits);
  }
}

}  // namespace saker::load::gguf
