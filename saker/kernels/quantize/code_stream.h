// SPDX-License-Identifier: Apache-2.0
// No #pragma once: see float_lanes.h.
//
// Packs eight codes of a byte each, the first one lowest, into a bit stream, and unpacks them.

#include <cstdint>

namespace saker::kernels::SAKER_ISA {
namespace {

// `bits` ones at the beginning of every `period` bits.
constexpr std::uint64_t comb(int bits, int period) {
  std::uint64_t result = 0;
  for (int at = 0; at < 64; at += period) {
    result |= (~std::uint64_t{0} >> (64 - bits)) << at;
  }
  return result;
}

// In every 2 * kPeriod bits, moves the two fields of kWidth bits together.
template <int kWidth, int kPeriod>
std::uint64_t join(std::uint64_t x) {
  constexpr std::uint64_t kEven = comb(kWidth, 2 * kPeriod);
  return (x & kEven) | (x >> (kPeriod - kWidth) & kEven << kWidth);
}

template <int kWidth, int kPeriod>
std::uint64_t part(std::uint64_t x) {
  constexpr std::uint64_t kEven = comb(kWidth, 2 * kPeriod);
  return (x & kEven) | (x & kEven << kWidth) << (kPeriod - kWidth);
}

template <int kBits>
std::uint64_t join_codes(std::uint64_t codes) {
  if constexpr (kBits == 8) {
    return codes;
  } else {
    return join<4 * kBits, 32>(join<2 * kBits, 16>(join<kBits, 8>(codes)));
  }
}

template <int kBits>
std::uint64_t part_codes(std::uint64_t stream) {
  if constexpr (kBits == 8) {
    return stream;
  } else {
    return part<kBits, 8>(part<2 * kBits, 16>(part<4 * kBits, 32>(stream)));
  }
}

}  // namespace
}  // namespace saker::kernels::SAKER_ISA
