// SPDX-License-Identifier: Apache-2.0
#pragma once

// Mixtures of experts in GGUF files, and latent attention, which models of one family have with
// them: llama.cpp's keys and names (gguf-py/gguf/constants.py), and a model folder's. Any thread.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_family.h"
#include "saker/load/gguf/gguf_file.h"
#include "saker/load/gguf/gguf_keys.h"
#include "saker/load/gguf/gguf_tensor_role.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {

// Adds the sizes and rules of a family's experts. Throws as Keys do, and for experts in a file of
// a family without them.
void add_experts(const Header& header, const Keys& keys, const Family& family, Json& config);

// The folder's name of a mixture's module behind "blk.N.": "mlp.gate" for "ffn_gate_inp". Empty for
// others.
std::optional<std::string> expert_path(const Family& family, std::string_view part);

// The folder's tensors of "blk.N.<rest>", if they are others than a module's: fused gates and ups, a
// bias of scores, a row. Empty for others.
std::vector<TensorRole> expert_roles(const Family& family, std::string_view name);

// Adds sizes of latent attention, and of the experts of models in which all layers have it. Sizes of heads are given for
// the expanded form or, in the first files, only for that.
void add_latent_attention(const Header& header, const Family& family, Json& config);

// True for tensors of layers that predict further tokens.
bool is_behind_layers(const Header& header, std::string_view name);

}  // namespace saker::load::gguf
