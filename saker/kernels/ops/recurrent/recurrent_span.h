// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of sequences with states, for operations whose past is a state of fixed size.

#include "saker/kernels/mx.h"

#include <optional>
#include <vector>

namespace saker::kernels {

inline constexpr int kMaxConvolutionTaps = 64;

// Float32 arrays of fixed shapes. Immutable.
using StateArrays = std::vector<mx::array>;

// Rows [first_row, first_row + row_count) continue one sequence.
struct RecurrentSpan {
  int first_row = 0;
  int row_count = 0;
  StateArrays state;
};

struct RecurrentResult {
  mx::array rows;                   // [N, ...]
  std::vector<StateArrays> states;  // After each span.
};

// The kernel of a causal convolution of each channel alone.
struct ConvolutionWeights {
  mx::array taps;                                // [taps, C], the newest row's tap last.
  std::optional<mx::array> bias = std::nullopt;  // [C]
};

}  // namespace saker::kernels
