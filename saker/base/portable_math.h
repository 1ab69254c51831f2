// SPDX-License-Identifier: Apache-2.0
#pragma once

// exp and log of doubles from IEEE additions, multiplications and one division only. They give the
// same bits on every machine and with every C library, which sampled tokens depend on. Errors are
// below 2 units in the last place; loops over these functions vectorise. REQUIRES: round to
// nearest, no contraction (-ffp-contract=off).
//
//   exp   x = n ln 2 + r, |r| <= ln 2 / 2; the Taylor polynomial of degree 13
//   log   x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); 2 atanh(f / (2 + f)) by its series

#include <bit>
#include <cstdint>

namespace saker {

// ln 2 as a sum. The high part ends in 21 zero bits, so that n * kLn2High is exact for |n| < 2^20.
inline constexpr double kLn2High = 0x1.62e42feep-1;
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// e^x for x <= 709; 0 from -708 down, and for NaN.
[[gnu::always_inline]] inline double portable_exp(double x) {
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  constexpr double kRound = 0x1.8p+52;  // Adding it rounds to an integer, kept in the low bits.
  const double shifted = x * kLog2E + kRound;
  const double n = shifted - kRound;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const std::uint64_t power = (std::bit_cast<std::uint64_t>(shifted) + 1023U) << 52U;
  // A mask instead of a branch, so that loops vectorise.
  const std::uint64_t mask = 0U - static_cast<std::uint64_t>(x > -708.0);
  return std::bit_cast<double>(
      std::bit_cast<std::uint64_t>(p * std::bit_cast<double>(power)) & mask
  );
}

// Natural logarithm. REQUIRES: x is finite, normal and positive.
[[gnu::always_inline]] inline double portable_log(double x) {
  constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52U) - 1;
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdU;  // Bits of sqrt(1/2).
  constexpr std::uint64_t kOne = 0x3ff0000000000000U;
  // Subtracting the bits of sqrt(1/2) leaves the wanted exponent in the top bits.
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) + (kOne - kSqrtHalf);
  const auto exponent = static_cast<double>(static_cast<std::int32_t>(bits >> 52U) - 1023);
  const double f = std::bit_cast<double>((bits & kMantissa) + kSqrtHalf) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 1.0 / 23.0;
  p = p * z + 1.0 / 21.0;
  p = p * z + 1.0 / 19.0;
  p = p * z + 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 0.2;
  p = p * z + 1.0 / 3.0;
  const double tail = s * (z * p);
  return exponent * kLn2High + (2.0 * (s + tail) + exponent * kLn2Low);
}

}  // namespace saker
