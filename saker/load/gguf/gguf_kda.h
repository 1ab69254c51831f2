// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kimi Delta Attention in GGUF files, for gguf_linear_attention.h. Pure; any thread.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_keys.h"
#include "saker/load/gguf/gguf_tensor_role.h"

#include <optional>
#include <string_view>

namespace saker::load::gguf {

// Adds which layers attend, and sizes of the others. Their heads are as many as those of attention.
void add_kda(const Keys& keys, Json& config);

// The place of a layer's tensor, behind "blk.N." and "model.layers.N."; none: it has no other one
// than in other families.
std::optional<TensorRole> kda_role(std::string_view name);

}  // namespace saker::load::gguf
