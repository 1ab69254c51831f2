// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace saker::kernels {

// Rows of a float32 array [N, H, D] whose elements of D lie side by side: row (n, h) starts at data
// + n * row_stride + h * head_stride. Plain data, since bodies of all instruction sets read it.
struct HeadRows {
  const float* data = nullptr;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t head_stride = 0;
};

}  // namespace saker::kernels
