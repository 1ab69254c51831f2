// SPDX-License-Identifier: Apache-2.0
#pragma once

// Vectors whose lanes try one scale each. A lane adds up its columns one after the other, so that
// its sums have the bits of a loop without vectors. Any thread.

#include "saker/load/encode/block_packing.h"

#include <cstddef>
#include <cstdint>

namespace saker::load::gguf {

inline constexpr std::size_t kScaleLanes = 4;

using ScaleLanes [[gnu::vector_size(4 * kScaleLanes)]] = float;
using ScaleWords [[gnu::vector_size(4 * kScaleLanes)]] = std::uint32_t;
using ScaleIntegers [[gnu::vector_size(4 * kScaleLanes)]] = std::int32_t;

inline ScaleLanes all_lanes(float value) {
  return value - ScaleLanes{};
}

inline ScaleLanes load_lanes(const float* from) {
  ScaleLanes lanes;
  __builtin_memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

inline void store_lanes(ScaleLanes lanes, float* to) {
  __builtin_memcpy(to, &lanes, sizeof(lanes));
}

// The lower one; NaN stays.
inline ScaleLanes at_most(ScaleLanes x, ScaleLanes limit) {
  return limit < x ? limit : x;
}

inline ScaleLanes at_least(ScaleLanes x, ScaleLanes limit) {
  return limit > x ? limit : x;
}

// The nearest integers, ties to even. REQUIRES: |x| <= 2^22, or NaN.
inline ScaleLanes nearest_lanes(ScaleLanes x) {
  return (x + kRoundingTerm) - kRoundingTerm;
}

}  // namespace saker::load::gguf
