// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear layers whose weights are integers in bytes, converted to MLX's affine layout with the same
// numbers, w = code * scale + bias.
//
//   compressed-tensors, int-quantized   8 bits, w = (weight - zero) * scale
//              weight [N, K] int8; weight_scale [N, K/G], [N, 1], [N] or [1];
//              weight_zero_point of that shape, or none: 0
//   bitnet     2 bits
//              weight [N/4, K] bytes: bits 2i of row r are those of row r + i * N/4, less 1;
//              weight_scale [1], which divides (`linear_class` autobitlinear: multiplies)
//
// (compressed-tensors' naive_quantized.py; mlx_lm/models/bitlinear_layers.py.)

#include "saker/load/importers/module_parts.h"
#include "saker/load/importers/packed_integers.h"

namespace saker::load::importers {

enum class TernaryScale { kDivides, kMultiplies };

// Throw as from_weight_packed does. `groups` is the configuration's description of such modules.
AffineModule from_int8(const ModuleParts& parts, const std::vector<DeclaredWeights>& groups);
// Its scales are float32 if they are the reciprocals of the file's.
AffineModule from_bitnet(const ModuleParts& parts, TernaryScale kind);

}  // namespace saker::load::importers
