// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace saker::kernels {

// Rows that memory is asked for ahead: a head's rows lie far apart.
inline constexpr int kHeadRowsAhead = 4;

// Heads that are made where they are read, from memory of another form. Several threads call it.
class HeadProducer {
 public:
  virtual ~HeadProducer() = default;
  // Writes row `row` of head `head` to `to`.
  virtual void make(std::ptrdiff_t row, int head, float* to) const = 0;
};

// Rows of a float32 array [N, H, D] whose elements of D lie side by side: row (n, h) starts at data
// + n * row_stride + h * head_stride. Bodies of all instruction sets read it.
struct HeadRows {
  const float* data = nullptr;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t head_stride = 0;
  // Not null: gives the rows in place of `data`, of which row 0 is its row first_made.
  const HeadProducer* made = nullptr;
  std::ptrdiff_t first_made = 0;
};

}  // namespace saker::kernels
