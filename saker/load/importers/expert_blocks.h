// SPDX-License-Identifier: Apache-2.0
#pragma once

// Experts in blocks of MXFP4 beside each other, as gpt-oss is published:
//   NAME_blocks  bytes [E, N, K/32, 16], the lower half first
//   NAME_scales  bytes [E, N, K/32]
//   NAME_bias    [E, N]
// They are MLX's mxfp4, unchanged. In gate_up_proj the rows of gates and ups take turns; they
// become gate_proj and up_proj.

#include "saker/load/importers/lazy_tensor.h"
#include "saker/load/importers/module_parts.h"

#include <string_view>
#include <vector>

namespace saker::load::importers {

// True for a name behind the experts' scope that ends so, if there are blocks with that NAME.
bool is_expert_blocks(const ModuleParts& parts, std::string_view leaf);
bool is_expert_scales(const ModuleParts& parts, std::string_view leaf);
bool is_expert_bias(const ModuleParts& parts, std::string_view leaf);

// Weights and scales. Throws kCorruptData naming a tensor of another shape.
std::vector<LazyTensor> from_expert_blocks(const ModuleParts& parts, std::string_view leaf);

// Biases. Throws as above.
std::vector<LazyTensor> from_expert_bias(const ModuleParts& parts, std::string_view leaf);

}  // namespace saker::load::importers
