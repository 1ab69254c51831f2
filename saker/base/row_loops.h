// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops over long rows, compiled for several instruction sets; the best one runs. All give the same
// bits, since portable_exp and the order of additions are fixed.

#include <cstddef>

namespace saker {

struct RowLoops {
  // The largest; -infinity without a number.
  float (*max)(const float* x, std::size_t count);
  // Sum of exp(x[i] - max), with 16 interleaved partial sums.
  double (*exp_sum)(const float* x, std::size_t count, double max);
  // out[i] = exp(x[i]), rounded to float32; 0 for NaN.
  void (*exponentials)(const float* x, std::size_t count, float* out);
};

const RowLoops& row_loops();

}  // namespace saker
