// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear layers whose weights are integers packed into 32-bit words, w = (code - zero) * scale,
// converted to MLX's affine layout. Codes are the same in MLX's order; biases are -zero * scale,
// rounded to the scales' dtype as mlx-lm does. If a tool's group is a multiple of MLX's, its scale
// repeats.
//
//   AutoAWQ    qweight [K, N/8]: a word holds inputs' row k of outputs 0 2 4 6 1 3 5 7;
//              qzeros [K/G, N/8] alike, or none: zero 8; scales [K/G, N].
//   GPTQ       qweight [K/8, N]: a word holds 8 inputs (of 2 bits 16, of 8 bits 4); qzeros
//              [K/G, N/8] alike, less one in the format's first version; scales [K/G, N]; g_idx
//              [K], which group an input is of.
//   compressed-tensors, pack-quantized   weight_packed [N, K/8] (or K/16, K/4): in order;
//              weight_scale [N, K/G]; weight_zero_point [N/8, K/G] packed, or bytes [N, K/G] from
//              the middle, or none: the middle; weight_g_idx [K], all -1 for none.
//
// (mlx_lm/utils.py; AutoAWQ's packing_utils.py; AutoGPTQ's qlinear_cuda.py; compressed-tensors'
// pack_quantized.py.) K inputs, N outputs, G inputs of a group.

#include "saker/kernels/layout/weight_format.h"
#include "saker/load/importers/declared_weights.h"
#include "saker/load/importers/lazy_tensor.h"
#include "saker/load/importers/module_parts.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace saker::load::importers {

// The number to add to stored zeros of a GPTQ file; 0 in the format's second version.
inline constexpr std::uint32_t kGptqOffset = 1;

struct AffineModule {
  LazyTensor tensor;  // Weight, scales, biases.
  kernels::WeightFormat format;
  // The bits come from the configuration only: a model with other columns must refuse them.
  bool is_declared = false;
};

// The offset that makes a module's stored zeros the middle (8 at 4 bits), if all are the middle or
// all one less. These are symmetric codes in either version of GPTQ's format. Empty for other zeros
// and without any.
std::optional<std::uint32_t> symmetric_offset(const ModuleParts& parts);

// Throws kCorruptData for parts that are missing or don't fit together, kUnsupported for inputs out
// of order (act-order) and for groups that MLX doesn't have. The tensors' `make` throws
// kCorruptData for scales that are not finite. `declared_bits` are those of GPTQ's codes if no
// zeros are stored.
AffineModule from_qweight(
    const ModuleParts& parts, std::uint32_t gptq_offset, std::int64_t declared_bits
);
// `groups` is the configuration's description of such modules.
AffineModule from_weight_packed(
    const ModuleParts& parts, const std::vector<DeclaredWeights>& groups
);

}  // namespace saker::load::importers
