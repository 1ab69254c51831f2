// SPDX-License-Identifier: Apache-2.0
#include "saker/base/tensor.h"

#include "saker/base/error.h"

#include <fmt/ranges.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker {
namespace {

struct DTypeInfo {
  std::string_view name;
  std::size_t size;
};

DTypeInfo dtype_info(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return {"F32", 4};
    case DType::kFloat16:
      return {"F16", 2};
    case DType::kBFloat16:
      return {"BF16", 2};
    case DType::kUInt32:
      return {"U32", 4};
    case DType::kUInt8:
      return {"U8", 1};
    case DType::kInt32:
      return {"I32", 4};
    case DType::kInt64:
      return {"I64", 8};
    case DType::kInt16:
      return {"I16", 2};
    case DType::kInt8:
      return {"I8", 1};
    case DType::kUInt16:
      return {"U16", 2};
    case DType::kUInt64:
      return {"U64", 8};
    case DType::kFloat64:
      return {"F64", 8};
    case DType::kBool:
      return {"BOOL", 1};
    case DType::kFloat8E4M3:
      return {"F8_E4M3", 1};
  }
  throw Error(ErrorCode::kInternal, "[tensor] unknown dtype");
}

// Subnormal halves become normal floats, so the value is rebuilt by an exact multiplication.
float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= 0x7c00U) {
    return std::bit_cast<float>(sign | 0x7f800000U | (magnitude & 0x3ffU) << 13);
  }
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

template <typename Source>
Source read_unaligned(const std::byte* at) {
  Source value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace

std::size_t dtype_size(DType dtype) {
  return dtype_info(dtype).size;
}

std::string_view float_name(DType dtype) {
  return dtype == DType::kFloat32 ? "float32" : dtype == DType::kFloat16 ? "float16" : "bfloat16";
}

std::string_view dtype_name(DType dtype) {
  return dtype_info(dtype).name;
}

std::int64_t Tensor::element_count() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent == 0) {
      return 0;
    }
    require(
        extent > 0 && count <= std::numeric_limits<std::int64_t>::max() / extent,
        ErrorCode::kCorruptData,
        "[tensor] extents too large or negative, got {}",
        extent
    );
    count *= extent;
  }
  return count;
}

std::size_t Tensor::nbytes() const {
  return static_cast<std::size_t>(element_count()) * dtype_size(dtype);
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<float> to_floats(const Tensor& tensor) {
  const auto count = static_cast<std::size_t>(tensor.element_count());
  const std::byte* bytes = tensor.data.get();
  std::vector<float> values(count);
  switch (tensor.dtype) {
    case DType::kFloat32:
      if (count > 0) {
        std::memcpy(values.data(), bytes, count * sizeof(float));
      }
      return values;
    case DType::kFloat16:
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = half_to_float(read_unaligned<std::uint16_t>(bytes + 2 * i));
      }
      return values;
    case DType::kBFloat16:
      for (std::size_t i = 0; i < count; ++i) {
        const auto high = read_unaligned<std::uint16_t>(bytes + 2 * i);
        values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(high) << 16);
      }
      return values;
    case DType::kFloat64:
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>(read_unaligned<double>(bytes + 8 * i));
      }
      return values;
    default:
      throw Error(
          ErrorCode::kCorruptData,
          fmt::format(
              "[tensor] got dtype {}, expected F32, F16, BF16 or F64", dtype_name(tensor.dtype)
          )
      );
  }
}

}  // namespace saker
