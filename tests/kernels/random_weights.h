// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random weights in each format that checkpoints have.

#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/layout/weight_format.h"

#include <cstdint>
#include <string>
#include <vector>

namespace saker::kernels {

// Every kind, width and group size of MLX's formats; all_formats() has blocks of GGUF files too.
std::vector<WeightFormat> mlx_formats();
std::vector<WeightFormat> all_formats();

std::string format_name(const WeightFormat& format);

// Tensors [rows, columns] at odd addresses, as in a mapped file. The dtype of affine scales varies
// with the seed.
WeightTensors random_weight(const WeightFormat& format, int rows, int columns, std::uint64_t seed);

}  // namespace saker::kernels
