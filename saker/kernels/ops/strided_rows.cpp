// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/strided_rows.h"

#include <cassert>
#include <cstddef>

namespace saker::kernels {

StridedRows::StridedRows(const mx::array& x)
    : rows_(x.ndim() > 1 ? x.shape(0) : 1),
      heads_(x.ndim() == 3 ? x.shape(1) : 1),
      width_(x.shape(-1)),
      view_{
          x.data<float>(),
          x.ndim() > 1 ? x.strides()[0] : 0,
          x.ndim() == 3 ? x.strides()[1] : 0,
      },
      element_stride_(width_ == 1 ? 1 : x.strides().back()) {
  assert(x.dtype() == mx::float32 && x.ndim() >= 1 && x.ndim() <= 3);
}

HeadRows StridedRows::resolve() {
  if (element_stride_ == 1) {
    return view_;
  }
  copy_.resize(static_cast<std::size_t>(rows_) * heads_ * width_);
  float* to = copy_.data();
  for (int row = 0; row < rows_; ++row) {
    for (int head = 0; head < heads_; ++head) {
      const float* from = at(view_, row, head);
      for (int d = 0; d < width_; ++d) {
        *to++ = from[d * element_stride_];
      }
    }
  }
  return {copy_.data(), static_cast<std::ptrdiff_t>(heads_) * width_, width_};
}

}  // namespace saker::kernels
