// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/packed_integers.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/kernels/quantize/quantize_loops.h"
#include "saker/load/files/host_rows.h"
#include "saker/load/importers/affine_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::importers {
namespace {

constexpr std::size_t kUnit =
    8;  // Rows that are made together: AutoAWQ's words hold one code of each.
// Shifts of outputs 0 to 7 in AutoAWQ's words.
constexpr std::array<std::uint32_t, kUnit> kAwqShift = {0, 16, 4, 20, 8, 24, 12, 28};

bool is_filled_with(const Tensor& words, std::uint32_t word) {
  const auto count = static_cast<std::size_t>(words.element_count());
  for (std::size_t i = 0; i < count; ++i) {
    if (word_at(words, i) != word) {
      return false;
    }
  }
  return true;
}

// Throws unless inputs are in the order of their groups; act-order's are not.
void check_order(
    const ModuleParts& parts, std::string_view leaf, std::int64_t columns, std::int64_t groups
) {
  if (parts.find(leaf) == nullptr) {
    return;
  }
  const Tensor& order = parts.at(leaf, kWords, {columns});
  const std::int64_t size = columns / groups;
  constexpr std::uint32_t kNone = ~std::uint32_t{0};  // -1 everywhere means none.
  if (word_at(order, 0) == kNone && is_filled_with(order, kNone)) {
    return;
  }
  for (std::int64_t i = 0; i < columns; ++i) {
    const auto group = word_at(order, static_cast<std::size_t>(i));
    require(
        static_cast<std::int64_t>(group) == i / size,
        ErrorCode::kUnsupported,
        "tensor {} puts input {} into group {}, expected {}: act-order can't be loaded",
        quote(fmt::format("{}.{}", parts.path(), leaf)),
        i,
        group,
        i / size
    );
  }
}

struct QweightRows {
  Tensor codes;
  Tensor scales;
  std::optional<Tensor> zeros;
  std::size_t columns = 0;
  std::size_t outputs = 0;
  bool is_awq = false;
  std::uint32_t bits = 4;
  std::uint32_t offset = 0;
  RowScales row_scales;

  std::size_t pack() const { return 32 / bits; }

  // Writes MLX's words of rows [8 * unit, 8 * unit + 8).
  void put_codes(std::size_t unit, std::byte* to) const {
    const std::size_t words = columns / pack();
    for (std::size_t at = 0; at < words; ++at) {
      std::array<std::uint32_t, kUnit> packed{};
      for (std::size_t i = 0; i < kUnit; ++i) {
        if (!is_awq) {
          packed[i] = word_at(codes, at * outputs + unit * kUnit + i);
          continue;
        }
        const std::uint32_t word = word_at(codes, (at * kUnit + i) * (outputs / kUnit) + unit);
        for (std::size_t row = 0; row < kUnit; ++row) {
          packed[row] |= (word >> kAwqShift[row] & 0xfU) << (4 * i);
        }
      }
      for (std::size_t row = 0; row < kUnit; ++row) {
        std::memcpy(
            to + (row * words + at) * sizeof(std::uint32_t), &packed[row], sizeof(std::uint32_t)
        );
      }
    }
  }

  std::uint32_t zero(std::size_t row, std::size_t group) const {
    if (!zeros) {
      return 1U << (bits - 1);
    }
    const std::uint32_t word = word_at(*zeros, group * (outputs / pack()) + row / pack());
    const std::size_t place = row % pack();
    const std::uint32_t shift =
        is_awq ? kAwqShift[place] : bits * static_cast<std::uint32_t>(place);
    return (word >> shift & ((1U << bits) - 1)) + offset;
  }

  void put_scales(std::size_t unit, std::byte* to, std::byte* biases) const {
    for (std::size_t i = 0; i < kUnit; ++i) {
      const std::size_t row = unit * kUnit + i;
      row_scales.write(
          [&](std::size_t group) { return float_at(scales, group * outputs + row); },
          [&](std::size_t group) { return zero(row, group); },
          row_at(to, i, row_scales.bytes()),
          row_at(biases, i, row_scales.bytes())
      );
    }
  }
};

// Whole rows of compressed-tensors.
struct PackedRows {
  Tensor codes;
  Tensor scales;
  std::optional<Tensor> zeros;
  std::size_t row_bytes = 0;
  std::size_t groups = 0;
  std::uint32_t bits = 4;
  RowScales row_scales;

  std::int64_t zero(std::size_t row, std::size_t group) const {
    const std::int64_t middle = std::int64_t{1} << (bits - 1);
    if (!zeros) {
      return middle;
    }
    if (zeros->dtype == DType::kInt8) {
      const std::byte byte = zeros->data.get()[row * groups + group];
      return middle + std::to_integer<std::int8_t>(byte);
    }
    const std::size_t pack = 32 / bits;
    const auto shift = bits * static_cast<std::uint32_t>(row % pack);
    return word_at(*zeros, row / pack * groups + group) >> shift & ((1U << bits) - 1);
  }

  // Writes row `row` to row `at` of the places.
  void put(std::size_t row, std::size_t at, const Places& places) const {
    if (places.codes != nullptr) {
      std::memcpy(places.codes + at * row_bytes, codes.data.get() + row * row_bytes, row_bytes);
    }
    if (places.has_scales()) {
      row_scales.write(
          [&](std::size_t group) { return float_at(scales, row * groups + group); },
          [&](std::size_t group) { return zero(row, group); },
          row_at(places.scales, at, row_scales.bytes()),
          row_at(places.biases, at, row_scales.bytes())
      );
    }
  }
};

// The bits of a code, from the number of words that hold the zeros of all outputs in a group.
std::optional<std::int64_t> stored_bits(const ModuleParts& parts, const Tensor& scales) {
  const Tensor* zeros = parts.find("qzeros");
  if (zeros != nullptr && zeros->shape.size() == 2 && zeros->shape[0] == scales.shape[0]) {
    for (const std::int64_t bits : {2, 4, 8}) {
      if (zeros->shape[1] * 32 == scales.shape[1] * bits) {
        return bits;
      }
    }
  }
  return std::nullopt;
}

std::vector<Tensor> all_of(const Tensor& codes, const Tensor& scales, const Tensor* zeros) {
  std::vector<Tensor> tensors = {codes, scales};
  if (zeros != nullptr) {
    tensors.push_back(*zeros);
  }
  return tensors;
}

std::optional<Tensor> copied(const Tensor* tensor) {
  return tensor != nullptr ? std::optional(*tensor) : std::nullopt;
}

// Compares with the size [N, K] that a file gives beside the codes.
void check_size(const ModuleParts& parts, std::int64_t rows, std::int64_t columns) {
  const Tensor* shape = parts.find("weight_shape");
  if (shape == nullptr) {
    return;
  }
  const auto values = to_integers(*shape);
  if (!values || *values != std::vector{rows, columns}) {
    parts.refuse("weight_shape", *shape, fmt::format("[{}, {}] in it", rows, columns));
  }
}

// The only bits that a group declares and that fit the codes and their scales.
std::int64_t declared_bits(
    const ModuleParts& parts,
    const Tensor& codes,
    std::int64_t scales,
    const std::vector<DeclaredWeights>& groups
) {
  std::optional<std::int64_t> found;
  for (const DeclaredWeights& group : groups) {
    const bool divides = group.bits && codes.shape[1] * 32 % *group.bits == 0;
    const std::int64_t columns = divides ? codes.shape[1] * 32 / *group.bits : 0;
    const bool fits =
        divides && (group.group_size ? columns == scales * *group.group_size : scales == 1);
    if (!fits || found == group.bits) {
      continue;
    }
    if (found) {
      parts.refuse("weight_packed", codes, "a weight_shape beside it, since two groups fit it");
    }
    found = group.bits;
  }
  if (!found) {
    parts.refuse(
        "weight_packed", codes, "a weight_shape beside it, or num_bits and group_size that fit it"
    );
  }
  return *found;
}

// The columns that explain the number of codes, by the file's size or, without it, by the
// configuration.
std::int64_t packed_columns(
    const ModuleParts& parts,
    const Tensor& codes,
    std::int64_t scales,
    const std::vector<DeclaredWeights>& groups
) {
  const Tensor* shape = parts.find("weight_shape");
  if (shape == nullptr) {
    return codes.shape[1] * 32 / declared_bits(parts, codes, scales, groups);
  }
  const auto values = to_integers(*shape);
  if (!values || values->size() != 2 || values->back() <= 0 ||
      codes.shape[1] * 32 % values->back() != 0) {
    parts.refuse("weight_shape", *shape, "2 sizes that divide the bits of the codes");
  }
  return values->back();
}

// Checks zero points of whole rows: packed words, or bytes.
void check_zeros(
    const ModuleParts& parts, std::int64_t outputs, std::int64_t groups, std::int64_t bits
) {
  constexpr std::string_view kZeroPoint = "weight_zero_point";
  if (parts.at(kZeroPoint).dtype == DType::kInt8) {
    parts.at(kZeroPoint, {DType::kInt8}, {outputs, groups});
    return;
  }
  const std::int64_t pack = 32 / bits;
  parts.at(kZeroPoint, kWords, {(outputs + pack - 1) / pack, groups});
}

}  // namespace

AffineModule from_qweight(
    const ModuleParts& parts, std::uint32_t gptq_offset, std::int64_t declared_bits
) {
  const Tensor& codes = parts.matrix("qweight", kWords);
  const Tensor& scales = parts.matrix("scales", kFloats);
  const Tensor* zeros = parts.find("qzeros");
  const auto unit_rows = static_cast<std::int64_t>(kUnit);
  const std::int64_t outputs = scales.shape[1];
  const bool is_awq = codes.shape[1] != outputs;
  if (outputs % unit_rows != 0 || (is_awq && codes.shape[1] * unit_rows != outputs)) {
    parts.refuse("scales", scales, fmt::format("{} columns", codes.shape[1] * unit_rows));
  }
  const std::int64_t bits = is_awq ? 4 : stored_bits(parts, scales).value_or(declared_bits);
  const std::int64_t pack = 32 / bits;
  const std::int64_t columns = is_awq ? codes.shape[0] : codes.shape[0] * pack;
  const std::int64_t count = scales.shape[0];
  const Groups groups = cut_groups(parts, columns, count);
  check_order(parts, "g_idx", columns, count);
  if (zeros != nullptr) {
    parts.at("qzeros", kWords, {count, outputs / pack});
  }
  auto tensor =
      affine_outputs(parts.path(), outputs, columns / pack, columns / groups.size, scales.dtype);
  tensor.rows = outputs / unit_rows;
  tensor.release = release_all(all_of(codes, scales, zeros));
  const QweightRows rows{
      .codes = codes,
      .scales = scales,
      .zeros = copied(zeros),
      .columns = static_cast<std::size_t>(columns),
      .outputs = static_cast<std::size_t>(outputs),
      .is_awq = is_awq,
      .bits = static_cast<std::uint32_t>(bits),
      .offset = is_awq ? 0 : gptq_offset,
      .row_scales = RowScales(parts.path(), groups, scales.dtype),
  };
  tensor.make = [rows, sizes = std::array{tensor.row_bytes(0), tensor.row_bytes(1)}](
                    std::int64_t first, std::int64_t units, std::span<std::byte* const> to
                ) {
    const Places places(to);
    for (std::size_t i = 0; i < static_cast<std::size_t>(units); ++i) {
      const std::size_t unit = static_cast<std::size_t>(first) + i;
      if (places.codes != nullptr) {
        rows.put_codes(unit, row_at(places.codes, i, sizes[0]));
      }
      if (places.has_scales()) {
        rows.put_scales(
            unit, row_at(places.scales, i, sizes[1]), row_at(places.biases, i, sizes[1])
        );
      }
    }
  };
  return {
      .tensor = std::move(tensor),
      .format = {kernels::WeightKind::kAffine, static_cast<int>(bits), groups.size},
      .is_declared = zeros == nullptr && parts.find("g_idx") == nullptr,
  };
}

std::optional<std::uint32_t> symmetric_offset(const ModuleParts& parts) {
  const Tensor* zeros = parts.find("qzeros");
  const Tensor* scales = parts.find("scales");
  if (zeros == nullptr || scales == nullptr || scales->shape.size() != 2 ||
      std::ranges::find(kWords, zeros->dtype) == kWords.end()) {
    return std::nullopt;
  }
  const auto bits = stored_bits(parts, *scales);
  if (!bits) {
    return std::nullopt;
  }
  const std::uint32_t ones = 0xffffffffU / ((1U << *bits) - 1);  // A 1 in each code of a word.
  const std::uint32_t middle = 1U << (*bits - 1);
  for (const std::uint32_t offset : {0U, 1U}) {
    if (is_filled_with(*zeros, (middle - offset) * ones)) {
      return offset;
    }
  }
  return std::nullopt;
}

AffineModule from_weight_packed(
    const ModuleParts& parts, const std::vector<DeclaredWeights>& declared
) {
  const Tensor& codes = parts.matrix("weight_packed", kWords);
  const Tensor& scales = parts.matrix("weight_scale", kFloats);
  const std::int64_t outputs = codes.shape[0];
  const std::int64_t columns = packed_columns(parts, codes, scales.shape[1], declared);
  const std::int64_t bits = codes.shape[1] * 32 / columns;
  if (bits != 2 && bits != 4 && bits != 8) {
    parts.refuse("weight_packed", codes, "2, 4 or 8 bits for each weight");
  }
  check_size(parts, outputs, columns);
  if (scales.shape[0] != outputs) {
    parts.refuse("weight_scale", scales, fmt::format("{} rows", outputs));
  }
  const std::int64_t count = scales.shape[1];
  const Groups groups = cut_groups(parts, columns, count);
  check_order(parts, "weight_g_idx", columns, count);
  const Tensor* zeros = parts.find("weight_zero_point");
  if (zeros != nullptr) {
    check_zeros(parts, outputs, count, bits);
  } else if (all_asymmetric(declared)) {
    parts.at("weight_zero_point");  // Throws, naming it.
  }
  auto tensor =
      affine_outputs(parts.path(), outputs, codes.shape[1], columns / groups.size, scales.dtype);
  tensor.rows = outputs;
  tensor.release = release_all(all_of(codes, scales, zeros));
  const PackedRows rows{
      .codes = codes,
      .scales = scales,
      .zeros = copied(zeros),
      .row_bytes = tensor.row_bytes(0),
      .groups = static_cast<std::size_t>(count),
      .bits = static_cast<std::uint32_t>(bits),
      .row_scales = RowScales(parts.path(), groups, scales.dtype),
  };
  tensor.make = [rows](std::int64_t first, std::int64_t made, std::span<std::byte* const> to) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(made); ++i) {
      rows.put(static_cast<std::size_t>(first) + i, i, Places(to));
    }
  };
  return {
      .tensor = std::move(tensor),
      .format = {kernels::WeightKind::kAffine, static_cast<int>(bits), groups.size},
      .is_declared = parts.find("weight_shape") == nullptr,
  };
}

}  // namespace saker::load::importers
