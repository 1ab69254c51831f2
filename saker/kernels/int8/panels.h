// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of int8, for rows that may lose some precision, on sets with VNNI: rows of x and of the
// weight are cut into panels of kPanel columns, and a row has one scale in each: its largest
// magnitude there over 127. What is multiplied is each number's nearest multiple of its scale. The
// sum of a panel is a whole number and exact; then y = fma(float(sum), x's scale * the weight's
// scale, y), panel after panel from 0. So these bits too depend on neither the rows beside a row
// nor tiles nor threads.
//
// A row of x that is not finite somewhere gets the scale NaN, and results of NaN.

#include "saker/kernels/codes/steps.h"
#include "saker/kernels/cpu/lanes.h"
#include "saker/kernels/products/prepare.h"

namespace saker::kernels::SAKER_ISA::int8 {

inline constexpr int kPanel = 512;  // Whole groups, chunks and steps of any layout.
inline constexpr float kLargest = 127.0F;
inline constexpr float kSmallestScale = 0x1p-100F;  // Below it numbers count as zero.

inline int panels(int columns) {
  return (columns + kPanel - 1) / kPanel;
}

// The columns [first, first + count) of a row of x, at most kPanel of them.
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

  // Sixteen multiples of the scale, from column `index` of the panel.
  [[gnu::always_inline]] U32x16 codes(int index) const {
    return to_int(mul(load(values_ + index), broadcast(inverse_)));
  }

 private:
  alignas(64) float values_[kPanel];
  float scale_;
  float inverse_;
};

}  // namespace saker::kernels::SAKER_ISA::int8
