// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear layers whose weights are integers packed into 32-bit words, w = (code - zero) * scale, as
// MLX's affine layout: the same codes in its order, and biases -zero * scale, rounded to the dtype
// of the scales as mlx-lm rounds them. A tool's groups may be multiples of MLX's: scales repeat.
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

#include "saker/kernels/weight_format.h"
#include "saker/load/importers/declared_weights.h"
#include "saker/load/importers/lazy_tensor.h"
#include "saker/load/importers/module_parts.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace saker::load::importers {

// What a GPTQ file adds to its zeros: 1, in the format's second version 0.
inline constexpr std::uint32_t kGptqOffset = 1;

struct AffineModule {
  LazyTensor tensor;  // Weight, scales, biases.
  kernels::WeightFormat format;
  // The bits are only what the configuration says: a model of other columns must refuse them.
  bool is_declared = false;
};

// What makes the middle (at 4 bits 8) of a module's stored zeros, where they are all the middle or
// all one less: symmetric codes in either version of GPTQ's format. Nothing for others, and without
// any.
std::optional<std::uint32_t> symmetric_offset(const ModuleParts& parts);

// Throws kCorruptData for parts that are missing or don't fit each other, kUnsupported for inputs
// out of order (act-order) and groups that MLX has not. The tensors' `make` throws kCorruptData for
// scales that are no finite numbers.
// `declared_bits`: those of GPTQ's codes where no zeros are stored.
AffineModule from_qweight(
    const ModuleParts& parts, std::uint32_t gptq_offset, std::int64_t declared_bits
);
// `groups`: what the configuration says of such modules.
AffineModule from_weight_packed(
    const ModuleParts& parts, const std::vector<DeclaredWeights>& groups
);

}  // namespace saker::load::importers
