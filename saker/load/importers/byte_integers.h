// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear layers whose weights are integers in bytes, as MLX's affine layout: the same numbers,
// w = code * scale + bias.
//
//   compressed-tensors, int-quantized   weight [N, K] int8; weight_scale [N, K/G], [N, 1], [N] or
//   [1];
//              weight_zero_point of that shape, or none: 0. w = (weight - zero) * scale: 8 bits.
//   bitnet     weight [N/4, K] bytes: bits 2i of row r are those of row r + i * N/4, less 1;
//              weight_scale [1], which divides (`linear_class` autobitlinear: multiplies): 2 bits.
//
// (compressed-tensors' naive_quantized.py; mlx_lm/models/bitlinear_layers.py.)

#include "saker/load/importers/module_parts.h"
#include "saker/load/importers/packed_integers.h"

namespace saker::load::importers {

enum class TernaryScale { kDivides, kMultiplies };

// Throw as from_weight_packed does. `groups`: what the configuration says of such modules.
AffineModule from_int8(const ModuleParts& parts, const std::vector<DeclaredWeights>& groups);
// Its scales are float32 where they are one divided by the file's.
AffineModule from_bitnet(const ModuleParts& parts, TernaryScale kind);

}  // namespace saker::load::importers
