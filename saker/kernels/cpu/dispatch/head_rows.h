// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace saker::kernels {

// How many rows ahead to prefetch: rows of one head are not adjacent.
inline constexpr int kHeadRowsAhead = 4;

// Computes rows of heads on demand, from memory in another form. Called from several threads.
class HeadProducer {
 public:
  virtual ~HeadProducer() = default;
  // Writes row `row` of head `head` to `to`.
  virtual void make(std::ptrdiff_t row, int head, float* to) const = 0;
};

// Rows of a float32 array [N, H, D] with dense elements: row (n, h) starts at data + n * row_stride
// + h * head_stride. Bodies of all instruction sets read it.
struct HeadRows {
  const float* data = nullptr;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t head_stride = 0;
  // If not null, computes the rows in place of `data`; row 0 here is its row first_made.
  const HeadProducer* made = nullptr;
  std::ptrdiff_t first_made = 0;
};

}  // namespace saker::kernels
