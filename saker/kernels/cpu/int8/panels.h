// SPDX-License-Identifier: Apache-2.0
#pragma once

// int8 products, for rows that may lose some precision, on sets with VNNI.
//
// Rows of x and of the weight are cut into panels of kPanel columns. In each panel a row has one
// scale: its largest magnitude there / 127. Each number is multiplied as its nearest multiple of
// the scale. The sum of a panel is an exact integer. Then y = fma(float(sum), x's scale * the
// weight's scale, y), panel by panel from 0. So these bits depend on neither the rows beside a row
// nor tiles nor threads.
//
// A row of x with a non-finite value gets the scale NaN, and results of NaN.

#include "saker/kernels/cpu/gemm/prepare.h"
#include "saker/kernels/cpu/gemm/steps.h"
#include "saker/kernels/layout/lanes.h"

namespace saker::kernels::SAKER_ISA::int8 {

inline constexpr int kPanel = 512;  // Whole groups, chunks and steps of any layout.
inline constexpr float kLargest = 127.0F;
inline constexpr float kSmallestScale = 0x1p-100F;  // Below it, numbers count as zero.

inline int panels(int columns) {
  return (columns + kPanel - 1) / kPanel;
}

// Columns [first, first + count) of a row of x, at most kPanel of them.
class InputPanel {
 public:
  InputPanel(const InputRows& x, int row, int first, int count) {
    copy_inputs(x, row, first, count, values_);
    const int padded = (count + kLanes - 1) / kLanes * kLanes;
    Largest largest;
    for (int i = 0; i < padded; i += kLanes) {
      largest.add(load(values_ + i));
    }
    for (int i = padded; i < kPanel; i += kLanes) {
      store(values_ + i, zero());
    }
    scale_ = largest.of_all() / kLargest;
    inverse_ = scale_ > kSmallestScale ? 1 / scale_ : 0;
  }

  float scale() const { return scale_; }

  // Sixteen multiples of the scale, from column `index` of the panel on.
  [[gnu::always_inline]] U32x16 codes(int index) const {
    return to_int(mul(load(values_ + index), broadcast(inverse_)));
  }

 private:
  alignas(64) float values_[kPanel];
  float scale_;
  float inverse_;
};

}  // namespace saker::kernels::SAKER_ISA::int8
