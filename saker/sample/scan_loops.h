// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops over blocks of a row of logits that find the few that need a closer look. They are compiled
// for several instruction sets, all with the same bits; the best one runs. NaN counts as -infinity.

#include <cstddef>
#include <cstdint>

namespace saker::sample {

// Tokens per block, the unit of these loops.
inline constexpr std::size_t kScanBlock = 128;

// The tokens that can win a race: values of at least `lower` whose noise can reach the best score
// so far. With d = x - max, a token's noise has to be -log(v), v uniform, with log2(v) <= slope * d
// + offset.
struct Contest {
  float lower = 0.0F;
  float max = 0.0F;
  float slope = 0.0F;
  float offset = 0.0F;
};

// Mass of a row: all of it, and above two values.
struct RoughMass {
  double all = 0.0;
  double above = 0.0;
  double well_above = 0.0;
};

struct ScanLoops {
  // maxima[i]: the largest value of block i; -infinity if none is a number.
  void (*block_maxima)(const float* row, std::size_t count, float* maxima);
  // Finds the contenders in one block of `count` tokens; `state` is its first token's state in the
  // noise stream. Writes their places and returns their number. Omits none that can win, and
  // includes few others.
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
