// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers of linear attention (gated delta nets) in GGUF files: llama.cpp's names and orders
// (conversion/qwen.py and gguf-py/gguf/constants.py, backwards). Its value heads stand in another
// order than in a model folder, and the decay is -exp of the folder's number. Any thread.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_family.h"
#include "saker/load/gguf/gguf_keys.h"
#include "saker/load/gguf/gguf_tensor_role.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace saker::load::gguf {

struct DeltaSizes {
  std::int64_t key_heads = 0;
  std::int64_t value_heads = 0;  // A multiple of key_heads.
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
};

// Adds sizes of these layers and the part of a head that rotates. REQUIRES: `config` has head_dim.
// Throws as Keys do.
void add_linear_attention(const Header& header, const Keys& keys, Json& config);

// Empty for tensors of other layers.
std::optional<TensorRole> linear_attention_role(
    const Family& family, const Keys& keys, std::string_view name
);

// A tensor of such a layer: its name behind "blk.N." in the file, and its role. The role's name is
// left to the caller.
struct DeltaTensor {
  std::string_view gguf;
  TensorRole role;
};

// For a folder's tensor "model.layers.N.linear_attn.<ours>". Empty for names that such layers do
// not have.
std::optional<DeltaTensor> find_delta_tensor(const DeltaSizes& sizes, std::string_view ours);

}  // namespace saker::load::gguf
