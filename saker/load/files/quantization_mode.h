// SPDX-License-Identifier: Apache-2.0
#pragma once

// The modes of quantized weights, by MLX's names in configurations. Pure; any thread.

#include "saker/kernels/layout/weight_format.h"

#include <string_view>

namespace saker::load {

// `mode` is "affine", "mxfp4", "nvfp4" or "mxfp8"; 0 bits or group size means the mode's default.
// Throws kInvalidArgument for formats that MLX does not have.
kernels::WeightFormat quantized_format(std::string_view mode, int bits, int group_size);
std::string_view mode_name(kernels::WeightKind kind);

}  // namespace saker::load
