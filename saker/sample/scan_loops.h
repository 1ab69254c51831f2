// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops over blocks of a row of logits that find what little of it needs a closer look, compiled
// for several instruction sets. All sets give the same bits; the best one runs. NaN counts as
// -infinity.

#include <cstddef>
#include <cstdint>

namespace saker::sample {

// Tokens of one block: what the loops take at a time.
inline constexpr std::size_t kScanBlock = 128;

// Which tokens a race asks for: those of at least `lower` whose noise can reach the line that is
// best so far. With d = x - max, a token's noise has to be -log(v), v uniform, with
// log2(v) <= slope * d + offset.
struct Contest {
  float lower = 0.0F;
  float max = 0.0F;
  float slope = 0.0F;
  float offset = 0.0F;
};

// Of a row: all of it, and what is above two values.
struct RoughMass {
  double all = 0.0;
  double above = 0.0;
  double well_above = 0.0;
};

struct ScanLoops {
  // maxima[i]: the largest of block i; -infinity without a number.
  void (*block_maxima)(const float* row, std::size_t count, float* maxima);
  // The contenders of one block of `count` tokens, of which `state` is the first one's in the noise
  // stream: writes their places, returns how many. Leaves out none that can win; keeps few others.
  std::size_t (*contenders)(
      const Contest& contest,
      const float* block,
      std::size_t count,
      std::uint64_t state,
      std::uint8_t* places
  );
  // Sums of exp(x - max). Each term has a relative error below 1e-7 min(max - x, 87) + 6e-6 and is
  // at least e^-87.
  RoughMass (*mass)(const float* row, std::size_t count, float max, float above, float well_above);
};

const ScanLoops& scan_loops();

}  // namespace saker::sample
