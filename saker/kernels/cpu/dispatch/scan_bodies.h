// SPDX-License-Identifier: Apache-2.0
#pragma once

// The body of the selective scan (see kernels/selective_scan.h). It sees one head of the rows of one
// sequence and takes the rows in order. So bits depend neither on where a sequence is cut nor
// on what runs beside it.

#include <cstddef>

namespace saker::kernels {

// Maximum columns of S that a body works on together.
inline constexpr int kScanColumns = 64;

// Per row, in order: S = decay S + b (step x)^T, then out = S^T c + skip x. S is [state_dim,
// head_dim].
struct ScanHead {
  const float* from;  // S before the first row.
  float* to;          // S after the last row; not `from`.
  float* scratch;     // [state_dim][kScanColumns]
  int state_dim;
  int head_dim;
  int rows;
  const float* x;  // Rows of [head_dim]; b and c have rows of [state_dim].
  const float* b;
  const float* c;
  std::ptrdiff_t stride;  // Between rows of x, b and c.
  const float* decay;
  const float* step;
  std::ptrdiff_t step_stride;  // Between rows of decay and step.
  float skip;
  float* out;  // Rows of [head_dim].
  std::ptrdiff_t out_stride;
};

}  // namespace saker::kernels
