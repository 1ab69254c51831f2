// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/quantization_mode.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace saker::load {
namespace {

using kernels::WeightFormat;
using kernels::WeightKind;

struct Mode {
  std::string_view name;
  WeightKind kind;
  int bits;  // Default.
  int group_size;
};

constexpr std::array<Mode, 4> kModes = {{
    {"affine", WeightKind::kAffine, 4, 64},
    {"mxfp4", WeightKind::kMxfp4, 4, 32},
    {"nvfp4", WeightKind::kNvfp4, 4, 16},
    {"mxfp8", WeightKind::kMxfp8, 8, 32},
}};

}  // namespace

WeightFormat quantized_format(std::string_view mode, int bits, int group_size) {
  const auto* found =
      std::find_if(kModes.begin(), kModes.end(), [&](const Mode& m) { return m.name == mode; });
  require(
      found != kModes.end(),
      ErrorCode::kInvalidArgument,
      "mode {} is unknown, expected affine, mxfp4, nvfp4 or mxfp8",
      quote(mode)
  );
  const WeightFormat format{
      .kind = found->kind,
      .bits = bits != 0 ? bits : found->bits,
      .group_size = group_size != 0 ? group_size : found->group_size,
  };
  const auto is_one_of = [](int value, std::initializer_list<int> allowed) {
    return std::ranges::find(allowed, value) != allowed.end();
  };
  const bool affine = format.kind == WeightKind::kAffine;
  require(
      affine ? is_one_of(format.bits, {2, 3, 4, 5, 6, 8}) : format.bits == found->bits,
      ErrorCode::kInvalidArgument,
      "{} bits with mode {}, expected {}",
      format.bits,
      mode,
      affine ? "2, 3, 4, 5, 6 or 8" : fmt::to_string(found->bits)
  );
  require(
      affine ? is_one_of(format.group_size, {32, 64, 128}) : format.group_size == found->group_size,
      ErrorCode::kInvalidArgument,
      "group size {} with mode {}, expected {}",
      format.group_size,
      mode,
      affine ? "32, 64 or 128" : fmt::to_string(found->group_size)
  );
  return format;
}

std::string_view mode_name(WeightKind kind) {
  for (const Mode& mode : kModes) {
    if (mode.kind == kind) {
      return mode.name;
    }
  }
  return "float";
}

}  // namespace saker::load
