// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear layers whose weights are floats of 8 or 4 bits. With a power of two as scale of each 32
// weights, 4 bits are MLX's mxfp4 and 8 bits its mxfp8, unchanged. Others become bfloat16, rounded
// once from float32.
//
//   fp8          weight [N, K] E4M3 with weight_scale_inv or weight_scale, which multiplies: one
//                for the tensor, for each row [N] or [N, 1], or for each block [N/B, K/C], the last
//                ones cut (DeepSeek, Qwen, Mistral; compressed-tensors' float-quantized). Scales of
//                E8M0 mean 2^(code - 127).
//   mxfp4-pack-quantized   weight_packed [N, K/2] bytes, the lower half first, weight_scale
//                [N, K/32] E8M0.
//   nvfp4-pack-quantized   the same with weight_scale [N, K/16] E4M3 over weight_global_scale, one
//                number.
//   modelopt's NVFP4       weight [N, K/2] bytes alike, weight_scale times weight_scale_2, one
//                number.
//
// (mlx_lm/models/deepseek_v3.py, `sanitize`; compressed-tensors' nvfp4_quantized.py; modelopt's
// nvfp4_tensor.py.)

#include "saker/load/importers/declared_weights.h"
#include "saker/load/importers/lazy_tensor.h"
#include "saker/load/importers/module_parts.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace saker::load::importers {

// All throw kCorruptData for parts that are missing or don't fit each other. `blocks` are
// candidates for the scales' blocks; the first that fits counts.
LazyTensor from_float8(const ModuleParts& parts, const std::vector<BlockSize>& blocks);
// Weight and scales of mxfp8. Empty if a scale is no power of two or covers fewer than 32 columns.
std::optional<LazyTensor> from_float8_powers(
    const ModuleParts& parts, const std::vector<BlockSize>& blocks
);
LazyTensor from_mxfp4(const ModuleParts& parts);  // Weight and scales.
LazyTensor from_nvfp4(const ModuleParts& parts);
LazyTensor from_modelopt_nvfp4(const ModuleParts& parts);

}  // namespace saker::load::importers
