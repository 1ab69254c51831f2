// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/byte_integers.h"

#include "saker/load/importers/affine_rows.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace saker::load::importers {
namespace {

constexpr int kByteBits = 8;
constexpr std::byte kSign{0x80};
constexpr int kTernaryBits = 2;
constexpr std::size_t kTernaryPack = 4;  // Rows per byte.

// Whole rows of int8 codes.
struct ByteRows {
  Tensor codes;
  Tensor scales;
  std::optional<Tensor> zeros;
  std::size_t columns = 0;
  std::size_t groups = 0;
  bool is_one_scale = false;
  RowScales row_scales;

  std::size_t place(std::size_t row, std::size_t group) const {
    return is_one_scale ? 0 : row * groups + group;
  }

  // A zero from -128 to 127, for codes from 0 to 255.
  float zero(std::size_t row, std::size_t group) const {
    constexpr float kMiddle = 128.0F;
    return kMiddle + (zeros ? static_cast<float>(std::to_integer<std::int8_t>(zeros->data.get(
                              )[place(row, group)]))
                            : 0.0F);
  }

  void put(std::size_t row, std::size_t at, const Places& places) const {
    if (places.codes != nullptr) {
      const std::byte* from = codes.data.get() + row * columns;
      std::byte* to = places.codes + at * columns;
      for (std::size_t i = 0; i < columns; ++i) {
        to[i] = from[i] ^ kSign;
      }
    }
    if (places.has_scales()) {
      row_scales.write(
          [&](std::size_t group) { return float_at(scales, place(row, group)); },
          [&](std::size_t group) { return zero(row, group); },
          row_at(places.scales, at, row_scales.bytes()),
          row_at(places.biases, at, row_scales.bytes())
      );
    }
  }
};

// Rows of 2-bit codes; a row of bytes holds four.
struct TernaryRows {
  Tensor codes;
  float scale = 1.0F;
  std::size_t columns = 0;
  RowScales row_scales;

  void put(std::size_t row, std::size_t at, const Places& places) const {
    const auto bytes = static_cast<std::size_t>(codes.shape[0]);
    const auto shift = static_cast<unsigned>(kTernaryBits * (row / bytes));
    if (places.codes != nullptr) {
      const std::byte* from = codes.data.get() + row % bytes * columns;
      std::byte* to = places.codes + at * (columns / kTernaryPack);
      for (std::size_t i = 0; i < columns; i += kTernaryPack) {
        unsigned packed = 0;
        for (std::size_t j = 0; j < kTernaryPack; ++j) {
          const unsigned code = std::to_integer<unsigned>(from[i + j]) >> shift & 3U;
          packed |= code << (kTernaryBits * j);
        }
        to[i / kTernaryPack] = static_cast<std::byte>(packed);
      }
    }
    if (places.has_scales()) {
      row_scales.write(
          [&](std::size_t) { return scale; },
          [](std::size_t) { return 1.0F; },
          row_at(places.scales, at, row_scales.bytes()),
          row_at(places.biases, at, row_scales.bytes())
      );
    }
  }
};

template <typename Rows>
AffineModule module_of(LazyTensor tensor, const Rows& rows, int bits, const Groups& groups) {
  tensor.make = [rows](std::int64_t first, std::int64_t count, std::span<std::byte* const> to) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      rows.put(static_cast<std::size_t>(first) + i, i, Places(to));
    }
  };
  return {std::move(tensor), {kernels::WeightKind::kAffine, bits, groups.size}};
}

}  // namespace

AffineModule from_int8(const ModuleParts& parts, const std::vector<DeclaredWeights>& declared) {
  const Tensor& codes = parts.matrix("weight", {DType::kInt8});
  const std::int64_t rows = codes.shape[0];
  const std::int64_t columns = codes.shape[1];
  const Tensor& given = parts.at("weight_scale");
  const bool is_one = given.shape.size() <= 2 && given.element_count() == 1;
  const bool is_row = given.shape == std::vector{rows};
  const bool fits =
      is_one || is_row || (given.shape.size() == 2 && given.shape[0] == rows && given.shape[1] > 0);
  if (!fits) {
    parts.refuse("weight_scale", given, fmt::format("[1] or {} rows", rows));
  }
  const Tensor& scales = parts.at("weight_scale", kFloats, given.shape);
  const std::int64_t count = is_one || is_row ? 1 : scales.shape[1];
  const Groups groups = cut_groups(parts, columns, count);
  const Tensor* zeros = parts.find("weight_zero_point");
  if (zeros != nullptr) {
    parts.at("weight_zero_point", {DType::kInt8}, scales.shape);
  } else if (all_asymmetric(declared)) {
    parts.at("weight_zero_point");  // Throws, naming it.
  }
  auto tensor = affine_outputs(
      parts.path(), rows, columns * kByteBits / 32, columns / groups.size, scales.dtype
  );
  std::vector<Tensor> all = {codes, scales};
  if (zeros != nullptr) {
    all.push_back(*zeros);
  }
  tensor.release = release_all(std::move(all));
  const ByteRows made{
      .codes = codes,
      .scales = scales,
      .zeros = zeros != nullptr ? std::optional(*zeros) : std::nullopt,
      .columns = static_cast<std::size_t>(columns),
      .groups = static_cast<std::size_t>(count),
      .is_one_scale = is_one,
      .row_scales = RowScales(parts.path(), groups, scales.dtype),
  };
  return module_of(std::move(tensor), made, kByteBits, groups);
}

AffineModule from_bitnet(const ModuleParts& parts, TernaryScale kind) {
  const Tensor& codes = parts.matrix("weight", {DType::kUInt8});
  const std::int64_t rows = codes.shape[0] * static_cast<std::int64_t>(kTernaryPack);
  const std::int64_t columns = codes.shape[1];
  const Tensor& given = parts.at("weight_scale");
  if (given.shape.size() > 2 || given.element_count() != 1) {
    parts.refuse("weight_scale", given, "one number");
  }
  const Tensor& scale = parts.at("weight_scale", kFloats, given.shape);
  const bool divides = kind == TernaryScale::kDivides;
  const Groups groups = cut_groups(parts, columns, 1);
  const DType dtype = divides ? DType::kFloat32 : scale.dtype;
  auto tensor =
      affine_outputs(parts.path(), rows, columns * kTernaryBits / 32, columns / groups.size, dtype);
  tensor.release = release_all({codes, scale});
  const TernaryRows made{
      .codes = codes,
      .scale = divides ? 1.0F / float_at(scale, 0) : float_at(scale, 0),
      .columns = static_cast<std::size_t>(columns),
      .row_scales = RowScales(parts.path(), groups, dtype),
  };
  return module_of(std::move(tensor), made, kTernaryBits, groups);
}

}  // namespace saker::load::importers
