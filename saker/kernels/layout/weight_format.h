// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a checkpoint stores the weight of a linear layer or embedding. No MLX.

#include "saker/base/tensor.h"

#include <cstdint>
#include <optional>
#include <string>

namespace saker::kernels {

enum class WeightKind : std::uint8_t {
  kFloat32,
  kFloat16,
  kBFloat16,
  kAffine,  // w = scale * q + bias per group; 2, 3, 4, 5, 6 or 8 bits.
  kMxfp4,   // E2M1 codes, E8M0 scale per 32.
  kNvfp4,   // E2M1 codes, E4M3 scale per 16.
  kMxfp8,   // E4M3 codes, E8M0 scale per 32.
};

struct WeightFormat {
  WeightKind kind = WeightKind::kFloat32;
  int bits = 0;        // Quantized kinds only.
  int group_size = 0;  // Quantized kinds only: columns that share one scale.

  bool operator==(const WeightFormat&) const = default;
};

// The tensors of one linear layer in MLX's layout: packed words [N, K * bits / 32], scales and
// biases [N, K / group_size].
struct WeightTensors {
  Tensor weight;
  std::optional<Tensor> scales;
  std::optional<Tensor> biases;
  std::string name = "weight";  // For error messages.
};

}  // namespace saker::kernels
