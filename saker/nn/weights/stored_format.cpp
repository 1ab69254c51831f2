// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/weights/stored_format.h"

#include "saker/base/error.h"

#include <fmt/ranges.h>

namespace saker::nn {
kernels::WeightFormat stored_format(
    const Tensor& weight, const Tensor& scales, int columns, const std::string& path
) {
  const auto fits = [&](const Tensor& tensor) {
    const auto dimensions = tensor.shape.size();
    return (dimensions == 2 || dimensions == 3) && tensor.shape.back() > 0 &&
           tensor.shape.back() <= columns;
  };
  require(
      columns > 0 && weight.dtype == DType::kUInt32 && fits(weight) && fits(scales),
      ErrorCode::kCorruptData,
      "[{}] weight {} {} and scales {} don't quantize {} columns",
      path,
      dtype_name(weight.dtype),
      shape_text(weight.shape),
      shape_text(scales.shape),
      columns
  );
  const auto word_bits = weight.shape.back() * 32;
  const auto groups = scales.shape.back();
  require(
      word_bits % columns == 0 && columns % groups == 0,
      ErrorCode::kCorruptData,
      "[{}] weight {} and scales {} don't divide {} columns evenly",
      path,
      shape_text(weight.shape),
      shape_text(scales.shape),
      columns
  );
  const int bits = static_cast<int>(word_bits / columns);
  const int group_size = static_cast<int>(columns / groups);
  if (scales.dtype != DType::kUInt8) {
    return {.kind = kernels::WeightKind::kAffine, .bits = bits, .group_size = group_size};
  }
  for (const kernels::WeightFormat known :
       {kernels::WeightFormat{kernels::WeightKind::kMxfp4, 4, 32},
        kernels::WeightFormat{kernels::WeightKind::kNvfp4, 4, 16},
        kernels::WeightFormat{kernels::WeightKind::kMxfp8, 8, 32}}) {
    if (known.bits == bits && known.group_size == group_size) {
      return known;
    }
  }
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format(
          "[{}] {} bits with 8-bit scales per {}: no format that we know", path, bits, group_size
      )
  );
}

}  // namespace saker::nn
