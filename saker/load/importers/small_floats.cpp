// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/small_floats.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/kernels/packing/codes.h"
#include "saker/kernels/quantize/quantize_loops.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::importers {
namespace {

constexpr std::int64_t kMxGroup = 32;
constexpr std::int64_t kNvGroup = 16;
constexpr std::array<float, 256> kE4m3 = [] {
  std::array<float, 256> values{};
  for (unsigned code = 0; code < values.size(); ++code) {
    values[code] = kernels::e4m3_value(code);
  }
  return values;
}();

std::uint8_t byte_at(const Tensor& tensor, std::size_t index) {
  return std::to_integer<std::uint8_t>(tensor.data.get()[index]);
}

// A matrix of bfloat16, made row by row; `values(row, to)` writes a row's floats.
template <typename Values>
LazyTensor bfloat16_rows(
    const ModuleParts& parts, std::int64_t rows, std::int64_t columns, const Values& values
) {
  LazyTensor tensor;
  tensor.outputs = {{parts.path() + ".weight", DType::kBFloat16, {rows, columns}}};
  tensor.rows = rows;
  tensor.make =
      [values, width = static_cast<std::size_t>(columns), row_bytes = tensor.row_bytes(0)](
          std::int64_t first, std::int64_t count, std::span<std::byte* const> to
      ) {
        std::vector<float> row(width);
        for (std::int64_t i = 0; i < count; ++i) {
          values(static_cast<std::size_t>(first + i), row.data());
          std::byte* at = to[0] + static_cast<std::size_t>(i) * row_bytes;
          kernels::quantize_loops().narrow(row.data(), DType::kBFloat16, width, at);
        }
      };
  return tensor;
}

// The scale of a weight is scale[row / rows * stride + column / columns].
struct ScalePlaces {
  std::size_t rows = 1;
  std::size_t columns = 1;
  std::size_t stride = 0;
};

std::int64_t ceil_div(std::int64_t count, std::int64_t by) {
  return count / by + (count % by != 0 ? 1 : 0);
}

ScalePlaces scale_places(
    const ModuleParts& parts,
    std::string_view leaf,
    const Tensor& weight,
    const std::vector<BlockSize>& blocks
) {
  const Tensor& scale = parts.at(leaf);
  const std::int64_t rows = weight.shape[0];
  const std::int64_t columns = weight.shape[1];
  const auto width = static_cast<std::size_t>(columns);
  std::string expected;
  for (const BlockSize& block : blocks) {
    const std::vector counts{ceil_div(rows, block.rows), ceil_div(columns, block.columns)};
    if (scale.shape == counts) {
      return {
          .rows = static_cast<std::size_t>(block.rows),
          .columns = static_cast<std::size_t>(block.columns),
          .stride = static_cast<std::size_t>(counts[1]),
      };
    }
    expected += fmt::format(" or blocks {}", shape_text(counts));
  }
  if (scale.shape.size() <= 2 && scale.element_count() == 1) {
    return {.rows = static_cast<std::size_t>(rows), .columns = width, .stride = 0};
  }
  if (scale.shape == std::vector{rows} || scale.shape == std::vector<std::int64_t>{rows, 1}) {
    return {.rows = 1, .columns = width, .stride = 1};
  }
  parts.refuse(
      leaf,
      scale,
      fmt::format("[1], [{}, 1]{} for weights {}", rows, expected, shape_text(weight.shape))
  );
}

std::string_view float8_scale(const ModuleParts& parts) {
  return parts.find("weight_scale_inv") != nullptr ? "weight_scale_inv" : "weight_scale";
}

constexpr std::initializer_list<DType> kFloat8Scales = {
    DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kUInt8
};

float scale_at(const Tensor& scale, std::size_t index) {
  if (scale.dtype != DType::kUInt8) {
    return float_at(scale, index);
  }
  return kernels::e8m0_value(byte_at(scale, index));
}

// The scale as E8M0; empty if it is no power of two.
std::optional<std::byte> power_at(const Tensor& scale, std::size_t index) {
  if (scale.dtype == DType::kUInt8) {
    return scale.data.get()[index];
  }
  const float value = float_at(scale, index);
  int exponent = 0;
  if (!std::isfinite(value) || std::frexp(value, &exponent) != 0.5F || exponent < -126) {
    return std::nullopt;
  }
  return static_cast<std::byte>(exponent + 126);
}

// A tensor of one number.
const Tensor& one_number(const ModuleParts& parts, std::string_view leaf) {
  const Tensor& given = parts.at(leaf);
  if (given.shape.size() > 2 || given.element_count() != 1) {
    parts.refuse(leaf, given, "one number");
  }
  return parts.at(leaf, {DType::kFloat32}, given.shape);
}

float positive(const ModuleParts& parts, std::string_view leaf, const Tensor& tensor) {
  const float value = float_at(tensor, 0);
  require(
      std::isfinite(value) && value > 0.0F,
      ErrorCode::kCorruptData,
      "tensor {} is {}, expected a number above 0",
      quote(fmt::format("{}.{}", parts.path(), leaf)),
      value
  );
  return value;
}

// `whole` combines a group's own scale with `global`.
template <typename Whole>
LazyTensor nvfp4_rows(
    const ModuleParts& parts, std::string_view leaf, const Tensor& global, const Whole& whole
) {
  const Tensor& codes = parts.matrix(leaf, {DType::kUInt8});
  const std::int64_t rows = codes.shape[0];
  const std::int64_t columns = codes.shape[1] * 2;
  if (columns % kNvGroup != 0) {
    parts.refuse(leaf, codes, fmt::format("columns in groups of {}", kNvGroup / 2));
  }
  const Tensor& scales = parts.at("weight_scale", {DType::kFloat8E4M3}, {rows, columns / kNvGroup});
  auto tensor =
      bfloat16_rows(parts, rows, columns, [codes, scales, whole](std::size_t row, float* to) {
        const auto width = static_cast<std::size_t>(codes.shape[1]) * 2;
        for (std::size_t i = 0; i < width; ++i) {
          const std::size_t at = row * width + i;
          const auto both = byte_at(codes, at / 2);
          const float scale = whole(kE4m3[byte_at(scales, at / kNvGroup)]);
          to[i] = kernels::e2m1_value(i % 2 == 0 ? both : both >> 4) * scale;
        }
      });
  tensor.release = release_all({codes, scales, global});
  return tensor;
}

}  // namespace

LazyTensor from_float8(const ModuleParts& parts, const std::vector<BlockSize>& blocks) {
  const Tensor& weight = parts.matrix("weight", {DType::kFloat8E4M3});
  const std::string_view leaf = float8_scale(parts);
  const Tensor& scale = parts.at(leaf);
  const ScalePlaces places = scale_places(parts, leaf, weight, blocks);
  parts.at(leaf, kFloat8Scales, scale.shape);
  auto tensor = bfloat16_rows(
      parts,
      weight.shape[0],
      weight.shape[1],
      [weight, scale, places](std::size_t row, float* to) {
        const auto width = static_cast<std::size_t>(weight.shape[1]);
        const std::size_t scales = row / places.rows * places.stride;
        for (std::size_t begin = 0; begin < width; begin += places.columns) {
          const float factor = scale_at(scale, scales + begin / places.columns);
          const std::size_t end = std::min(width, begin + places.columns);
          for (std::size_t i = begin; i < end; ++i) {
            to[i] = kE4m3[byte_at(weight, row * width + i)] * factor;
          }
        }
      }
  );
  tensor.release = release_all({weight, scale});
  return tensor;
}

std::optional<LazyTensor> from_float8_powers(
    const ModuleParts& parts, const std::vector<BlockSize>& blocks
) {
  const Tensor& weight = parts.matrix("weight", {DType::kFloat8E4M3});
  const std::string_view leaf = float8_scale(parts);
  const Tensor& scale = parts.at(leaf);
  const ScalePlaces places = scale_places(parts, leaf, weight, blocks);
  parts.at(leaf, kFloat8Scales, scale.shape);
  const std::int64_t rows = weight.shape[0];
  const auto width = static_cast<std::size_t>(weight.shape[1]);
  if (width % kMxGroup != 0 || places.columns % kMxGroup != 0) {
    return std::nullopt;
  }
  std::vector<std::byte> powers(static_cast<std::size_t>(scale.element_count()));
  for (std::size_t i = 0; i < powers.size(); ++i) {
    const auto power = power_at(scale, i);
    if (!power) {
      return std::nullopt;
    }
    powers[i] = *power;
  }
  LazyTensor tensor;
  tensor.outputs = {
      {parts.path() + ".weight", DType::kUInt32, {rows, weight.shape[1] / 4}},
      {parts.path() + ".scales", DType::kUInt8, {rows, weight.shape[1] / kMxGroup}},
  };
  tensor.rows = rows;
  tensor.release = release_all({weight, scale});
  tensor.make = [weight, places, width, powers = std::move(powers)](
                    std::int64_t first, std::int64_t count, std::span<std::byte* const> to
                ) {
    const auto begin = static_cast<std::size_t>(first);
    const auto end = begin + static_cast<std::size_t>(count);
    if (to[0] != nullptr) {
      std::memcpy(to[0], weight.data.get() + begin * width, (end - begin) * width);
    }
    for (std::size_t row = begin; to[1] != nullptr && row < end; ++row) {
      std::byte* at = to[1] + (row - begin) * (width / kMxGroup);
      for (std::size_t k = 0; k < width; k += kMxGroup) {
        *at++ = powers[row / places.rows * places.stride + k / places.columns];
      }
    }
  };
  return tensor;
}

LazyTensor from_mxfp4(const ModuleParts& parts) {
  const Tensor& codes = parts.matrix("weight_packed", {DType::kUInt8});
  const std::int64_t rows = codes.shape[0];
  const std::int64_t columns = codes.shape[1] * 2;
  if (columns % kMxGroup != 0) {
    parts.refuse("weight_packed", codes, fmt::format("columns in groups of {}", kMxGroup / 2));
  }
  const Tensor& scales = parts.at("weight_scale", {DType::kUInt8}, {rows, columns / kMxGroup});
  LazyTensor tensor;
  tensor.outputs = {
      {parts.path() + ".weight", DType::kUInt32, {rows, columns / 8}},
      {parts.path() + ".scales", DType::kUInt8, scales.shape},
  };
  tensor.rows = rows;
  tensor.release = release_all({codes, scales});
  tensor.make = [codes,
                 scales](std::int64_t first, std::int64_t count, std::span<std::byte* const> to) {
    std::size_t output = 0;
    for (const Tensor* from : {&codes, &scales}) {
      const auto row = static_cast<std::size_t>(from->shape[1]);
      std::byte* const place = to[output++];
      if (place != nullptr) {
        std::memcpy(
            place,
            from->data.get() + static_cast<std::size_t>(first) * row,
            static_cast<std::size_t>(count) * row
        );
      }
    }
  };
  return tensor;
}

LazyTensor from_nvfp4(const ModuleParts& parts) {
  const Tensor& global = one_number(parts, "weight_global_scale");
  const float divisor = positive(parts, "weight_global_scale", global);
  return nvfp4_rows(parts, "weight_packed", global, [divisor](float scale) {
    return scale / divisor;
  });
}

LazyTensor from_modelopt_nvfp4(const ModuleParts& parts) {
  const Tensor& global = one_number(parts, "weight_scale_2");
  const float factor = positive(parts, "weight_scale_2", global);
  return nvfp4_rows(parts, "weight", global, [factor](float scale) { return scale * factor; });
}

}  // namespace saker::load::importers
