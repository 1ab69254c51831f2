// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weights of GGUF blocks, one value at a time: the reference for packing.

#include "saker/kernels/layout/block_format.h"

#include <vector>

namespace saker::kernels {

// All weights of a tensor of blocks, rounded as ggml's dequantize does.
std::vector<float> block_values(const Tensor& blocks, BlockKind kind);

}  // namespace saker::kernels
