// SPDX-License-Identifier: Apache-2.0
#pragma once

// A float32 input of an operation seen as rows: [D], [N, D] or [N, H, D].
//
// Slices of a merged projection have gaps between rows but dense elements, so they are read in
// place. `resolve` copies anything else. It runs in the operation's task, when the input holds its
// values.

#include "saker/kernels/cpu/dispatch/head_rows.h"
#include "saker/kernels/mx.h"

#include <vector>

namespace saker::kernels {

class StridedRows {
 public:
  // REQUIRES: float32, 1 to 3 dimensions, not empty, memory assigned. Missing dimensions count as
  // 1.
  explicit StridedRows(const mx::array& x);

  int rows() const { return rows_; }

  int heads() const { return heads_; }

  int width() const { return width_; }

  // Valid as long as this object is.
  HeadRows resolve();

  static const float* at(const HeadRows& rows, int row, int head) {
    return rows.data + row * rows.row_stride + head * rows.head_stride;
  }

 private:
  int rows_;
  int heads_;
  int width_;
  HeadRows view_;
  std::ptrdiff_t element_stride_;
  std::vector<float> copy_;
};

}  // namespace saker::kernels
