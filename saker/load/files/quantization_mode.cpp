// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/quantization_mode.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

namespace saker::load {
namespace {

using kernels::WeightFormat;
using kernels::WeightKind;

constexpr std::array kAffineBits{2, 3, 4, 5, 6, 8};
constexpr std::array kAffineGroups{32, 64, 128};
constexpr std::array kBits4{4};
constexpr std::array kBits8{8};
constexpr std::array kGroup16{16};
constexpr std::array kGroup32{32};

constexpr std::array<QuantizationMode, 4> kModes{{
    {"affine", WeightKind::kAffine, kAffineBits, kAffineGroups, {WeightKind::kAffine, 4, 64}},
    {"mxfp4", WeightKind::kMxfp4, kBits4, kGroup32, {WeightKind::kMxfp4, 4, 32}},
    {"nvfp4", WeightKind::kNvfp4, kBits4, kGroup16, {WeightKind::kNvfp4, 4, 16}},
    {"mxfp8", WeightKind::kMxfp8, kBits8, kGroup32, {WeightKind::kMxfp8, 8, 32}},
}};

const QuantizationMode* mode_of(WeightKind kind) {
  const auto* found = std::ranges::find(kModes, kind, &QuantizationMode::kind);
  return found != kModes.end() ? found : nullptr;
}

bool is_one_of(int value, std::span<const int> allowed) {
  return std::ranges::find(allowed, value) != allowed.end();
}

// "2, 3 or 4".
std::string choice_text(std::span<const int> values) {
  const auto last = values.back();
  const auto others = values.first(values.size() - 1);
  return others.empty() ? fmt::to_string(last)
                        : fmt::format("{} or {}", fmt::join(others, ", "), last);
}

}  // namespace

const QuantizationMode* find_mode(std::string_view name) {
  const auto* found = std::ranges::find(kModes, name, &QuantizationMode::name);
  return found != kModes.end() ? found : nullptr;
}

std::string_view mode_name(WeightKind kind) {
  const QuantizationMode* mode = mode_of(kind);
  return mode != nullptr ? mode->name : "float";
}

bool is_of_mlx(const WeightFormat& format) {
  const QuantizationMode* mode = mode_of(format.kind);
  return mode != nullptr && is_one_of(format.bits, mode->bits) &&
         is_one_of(format.group_size, mode->group_sizes);
}

WeightFormat quantized_format(std::string_view name, int bits, int group_size) {
  const QuantizationMode* mode = find_mode(name);
  require(
      mode != nullptr,
      ErrorCode::kInvalidArgument,
      "mode {} is unknown, expected affine, mxfp4, nvfp4 or mxfp8",
      quote(name)
  );
  WeightFormat format = mode->usual;
  format.bits = bits != 0 ? bits : format.bits;
  format.group_size = group_size != 0 ? group_size : format.group_size;
  require(
      is_one_of(format.bits, mode->bits),
      ErrorCode::kInvalidArgument,
      "{} bits with mode {}, expected {}",
      format.bits,
      name,
      choice_text(mode->bits)
  );
  require(
      is_one_of(format.group_size, mode->group_sizes),
      ErrorCode::kInvalidArgument,
      "group size {} with mode {}, expected {}",
      format.group_size,
      name,
      choice_text(mode->group_sizes)
  );
  return format;
}

}  // namespace saker::load
