// SPDX-License-Identifier: Apache-2.0
#pragma once

// The content of a PackedWeight on each device. Only the kernels include this.

#include "saker/kernels/layout/packed_matrix.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/storage/packed_weight.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace saker::kernels {

// The arrays of a checkpoint in MLX's layout: weight [N, K] or words; scales and biases [N, K /
// group_size].
struct MlxWeight {
  mx::array weight;
  std::optional<mx::array> scales;
  std::optional<mx::array> biases;
};

struct PackedWeight::Storage {
  // CPU: the packed bytes, at matrix.data; or the checkpoint's own bytes, with the address of each
  // block.
  std::vector<std::shared_ptr<const std::byte>> bytes;
  std::vector<const std::byte*> block_places;
  PackedMatrix matrix;
  // GPU: set instead of the above.
  std::optional<MlxWeight> arrays;
};

// MLX's name of a quantized kind.
const char* mlx_mode(WeightKind kind);

// The dtype in which a GPU multiplies these weights: bf16, which is fast, if they are no finer;
// else float32.
mx::Dtype operand_dtype(const MlxWeight& arrays);

// The weight in float32, [N, K].
mx::array dequantize_arrays(const MlxWeight& arrays, const WeightFormat& format);

}  // namespace saker::kernels
