// SPDX-License-Identifier: Apache-2.0
#include "saker/base/portable_math.h"
#include "saker/load/encode/block_packing.h"
#include "saker/load/encode/row_block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace saker::load::gguf {
namespace {

constexpr std::size_t kSmallFloatBlock = 32;
constexpr std::size_t kTernaryBlock = 256;

float highest_magnitude(std::span<const float> values) {
  float highest = 0.0F;
  for (const float value : values) {
    highest = std::max(highest, std::abs(value));
  }
  return highest;
}

// The biased exponent (E8M0) that is two below the largest value's. The logarithm is that of
// float32: values just below a power of 2 may get the power's exponent.
unsigned shared_exponent(float highest) {
  constexpr float kSmallest = 0x1p-125F;
  if (!(highest >= kSmallest) || std::isinf(highest)) {
    return 0;
  }
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  const auto logarithm = static_cast<float>(portable_log(highest) / kLn2);
  return static_cast<unsigned>(static_cast<int>(std::floor(logarithm)) + 125);
}

// Half of 2^(exponent - 127): codes are doubled E2M1 numbers.
float half_unit(unsigned exponent) {
  const std::uint32_t bits = exponent < 2 ? 0x00200000U << exponent : (exponent - 1) << 23U;
  return std::bit_cast<float>(bits);
}

// The nearest of 0, 1, 2, 3, 4, 6, 8, 12 times `unit`, the lower one of two; bit 3 is the sign, which
// 0 lacks.
std::uint8_t small_float_code(float value, float unit) {
  constexpr float kMiddles[] = {0.5F, 1.5F, 2.5F, 3.5F, 5.0F, 7.0F, 10.0F};
  const float magnitude = std::abs(value);
  unsigned code = 0;
  for (const float middle : kMiddles) {
    code += static_cast<unsigned>(magnitude > middle * unit);
  }
  const bool negative = value < 0.0F && code != 0;
  return static_cast<std::uint8_t>(code | (negative ? 8U : 0U));
}

// Digits 0, 1, 2 for the signs of values, and the scale.
struct Ternary {
  std::uint8_t digits[kTernaryBlock];
  float scale = 0.0F;
};

Ternary ternary_of(std::span<const float> values) {
  Ternary result;
  result.scale = highest_magnitude(values);
  const float inverse = result.scale != 0.0F ? 1.0F / result.scale : 0.0F;
  for (std::size_t i = 0; i < kTernaryBlock; ++i) {
    const int digit = rounded_integer(values.data()[i] * inverse) + 1;
    result.digits[i] = static_cast<std::uint8_t>(digit);
  }
  return result;
}

// A byte of up to five digits, the first one highest: byte / 256 is the number 0.digits of base 3.
std::byte ternary_byte(const std::uint8_t* digits, std::size_t count, std::size_t stride) {
  unsigned number = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    number = number * 3 + (i < count ? digits[i * stride] : 0U);
  }
  return static_cast<std::byte>((number * 256 + 242) / 243);
}

}  // namespace

void encode_mxfp4(const RowBlock& block, std::byte* to) {
  const unsigned exponent = shared_exponent(highest_magnitude(block.values));
  const float unit = half_unit(exponent);
  std::uint8_t codes[kSmallFloatBlock];
  for (std::size_t i = 0; i < kSmallFloatBlock; ++i) {
    codes[i] = small_float_code(block.values.data()[i], unit);
  }
  to[0] = static_cast<std::byte>(exponent);
  put_nibbles(codes, kSmallFloatBlock / 2, to + 1);
}

void encode_tq1_0(const RowBlock& block, std::byte* to) {
  const Ternary ternary = ternary_of(block.values);
  for (std::size_t i = 0; i < 32; ++i) {
    to[i] = ternary_byte(ternary.digits + i, 5, 32);
  }
  for (std::size_t i = 0; i < 16; ++i) {
    to[32 + i] = ternary_byte(ternary.digits + 160 + i, 5, 16);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    to[48 + i] = ternary_byte(ternary.digits + 240 + i, 4, 4);
  }
  put_half(ternary.scale, to + 52);
}

void encode_tq2_0(const RowBlock& block, std::byte* to) {
  const Ternary ternary = ternary_of(block.values);
  put_bit_pairs(ternary.digits, 0, to);
  put_bit_pairs(ternary.digits + 128, 0, to + 32);
  put_half(ternary.scale, to + 64);
}

}  // namespace saker::load::gguf
