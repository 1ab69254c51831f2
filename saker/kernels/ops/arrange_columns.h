// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows with their columns in another order.

#include "saker/kernels/mx.h"

#include <vector>

namespace saker::kernels {

// Columns [first, first + count).
struct ColumnRange {
  int first = 0;
  int count = 0;
};

// x [N, C] -> the ranges' columns side by side, [N, sum of counts]. REQUIRES: ranges inside x.
mx::array arrange_columns(const mx::array& x, const std::vector<ColumnRange>& ranges);

mx::array arrange_columns_reference(const mx::array& x, const std::vector<ColumnRange>& ranges);

}  // namespace saker::kernels
