// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/arrange_columns.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/strided_rows.h"

#include <algorithm>
#include <cstddef>

namespace saker::kernels {
namespace {

int width_of(const std::vector<ColumnRange>& ranges) {
  int width = 0;
  for (const ColumnRange& range : ranges) {
    width += range.count;
  }
  return width;
}

// Input x [N, C]; output [N, width].
struct ArrangeBody {
  std::vector<ColumnRange> ranges;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [ranges = ranges, x = StridedRows(inputs[0]), out = outputs[0].data<float>()]() mutable {
      const HeadRows from = x.resolve();
      const int width = width_of(ranges);
      each_row(x.rows(), width, [&](int row) {
        const float* at = StridedRows::at(from, row, 0);
        float* to = out + static_cast<std::ptrdiff_t>(row) * width;
        for (const ColumnRange& range : ranges) {
          to = std::copy_n(at + range.first, range.count, to);
        }
      });
    };
  }
};

void check_ranges(const mx::array& x, const std::vector<ColumnRange>& ranges) {
  require(
      x.ndim() == 2 && x.size() > 0 &&
          std::ranges::all_of(
              ranges,
              [&](const ColumnRange& range) {
                return range.first >= 0 && range.count >= 0 &&
                       range.first <= x.shape(1) - range.count;
              }
          ),
      ErrorCode::kInternal,
      "[columns] ranges outside rows of {} columns",
      x.ndim() == 2 ? x.shape(1) : 0
  );
}

}  // namespace

mx::array arrange_columns(const mx::array& x, const std::vector<ColumnRange>& ranges) {
  check_ranges(x, ranges);
  if (!on_cpu() || x.dtype() != mx::float32) {
    return arrange_columns_reference(x, ranges);
  }
  const mx::Shape shape = {x.shape(0), width_of(ranges)};
  return cpu_operation("SakerArrangeColumns", shape, {x}, ArrangeBody{ranges});
}

mx::array arrange_columns_reference(const mx::array& x, const std::vector<ColumnRange>& ranges) {
  check_ranges(x, ranges);
  std::vector<mx::array> parts;
  parts.reserve(ranges.size());
  for (const ColumnRange& range : ranges) {
    parts.push_back(mx::slice(x, {0, range.first}, {x.shape(0), range.first + range.count}));
  }
  return mx::concatenate(parts, 1);
}

}  // namespace saker::kernels
