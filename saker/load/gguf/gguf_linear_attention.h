// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers of linear attention (gated delta nets) in GGUF files: llama.cpp's names and orders
// (conversion/qwen.py and gguf-py/gguf/constants.py, backwards). Its value heads stand in another
// order than in a model folder, and the decay is -exp of the folder's number. Any thread.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_keys.h"
#include "saker/load/gguf/gguf_tensor_role.h"

#include <optional>
#include <string_view>

namespace saker::load::gguf {

// Adds sizes of these layers and the part of a head that rotates. REQUIRES: `config` has head_dim.
// Throws as Keys do.
void add_linear_attention(const Keys& keys, Json& config);

// Empty for tensors of other layers.
std::optional<TensorRole> linear_attention_role(const Keys& keys, std::string_view name);

// True for tensors behind the model's last layer: a head that drafts tokens.
bool is_of_draft_head(const Keys& keys, std::string_view name);

}  // namespace saker::load::gguf
