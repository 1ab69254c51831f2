// SPDX-License-Identifier: Apache-2.0
#pragma once

// The modes of quantized weights, by MLX's names in configurations, and the formats that MLX has in
// each. Pure; any thread.

#include "saker/kernels/layout/weight_format.h"

#include <span>
#include <string_view>

namespace saker::load {

struct QuantizationMode {
  std::string_view name;
  kernels::WeightKind kind;
  std::span<const int> bits;
  std::span<const int> group_sizes;
  kernels::WeightFormat usual;
};

// Null for a name that is no mode.
const QuantizationMode* find_mode(std::string_view name);

// "float" for formats without codes.
std::string_view mode_name(kernels::WeightKind kind);

// True if MLX has this format of codes.
bool is_of_mlx(const kernels::WeightFormat& format);

// 0 bits or group size means the mode's default. Throws kInvalidArgument for formats that MLX does
// not have.
kernels::WeightFormat quantized_format(std::string_view mode, int bits, int group_size);

}  // namespace saker::load
