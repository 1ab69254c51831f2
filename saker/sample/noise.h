// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counter-based noise. Every random number of sampling is a pure function of (seed, choice,
// position, role, id). So a token never depends on earlier, parallel or speculative draws.
//
// Bits come from SplitMix64 (Steele, Lea, Flood 2014, https://doi.org/10.1145/2660193.2660195). The
// key is three rounds of its finalizer over seed, choice with role, and position; id i has the
// stream's i-th output. Gumbel noise is -log(-log(1 - v)) by our own logarithm, so its bits are
// equal on all machines. The values are persistent: a seed must give the same text in later
// versions.

#include "saker/base/portable_math.h"

#include <bit>
#include <cstdint>

namespace saker::sample {

// The purpose of a number: one position may need several.
enum class NoiseRole : std::uint8_t { kToken = 0, kXtc = 1, kAcceptance = 2, kResidual = 3 };

class Noise {
 public:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15U;  // 2^64 / golden ratio, odd.

  // Always inlined: loops over it are vectorised and compiled for several instruction sets.
  [[gnu::always_inline]] static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
  }

  // `choice` numbers the answers of one request; `position` is the absolute position of the token
  // to choose.
  Noise(std::uint64_t seed, std::uint32_t choice, std::int64_t position, NoiseRole role)
      : key_(
            mix(mix(mix(seed + kStep) ^
                    (std::uint64_t{choice} << 8U | static_cast<std::uint64_t>(role))) +
                static_cast<std::uint64_t>(position) * kStep)
        ) {}

  // The stream at `id`: bits(id) = mix(state(id)), state(id + 1) = state(id) + kStep.
  std::uint64_t state(std::int32_t id) const {
    return key_ + (static_cast<std::uint64_t>(id) + 1) * kStep;
  }

  std::uint64_t bits(std::int32_t id) const { return mix(state(id)); }

  // A value in (0, 1), a multiple of 2^-53.
  static double to_uniform(std::uint64_t bits) {
    return (static_cast<double>(bits >> 12U) + 0.5) * 0x1p-52;
  }

  // A value of the standard Gumbel distribution, in (-3.7, 36.8).
  static double to_gumbel(std::uint64_t bits) {
    return -portable_log(-portable_log(1.0 - to_uniform(bits)));
  }

  // An upper bound of `to_gumbel(bits)` in a few integer operations: -log(1 - v) >= v, and v >=
  // 2^-(leading zeros + 1).
  static double gumbel_bound(std::uint64_t bits) {
    constexpr double kLn2Above = 0.6931471806;
    return static_cast<double>(std::countl_zero(bits) + 1) * kLn2Above;
  }

 private:
  std::uint64_t key_;
};

}  // namespace saker::sample
