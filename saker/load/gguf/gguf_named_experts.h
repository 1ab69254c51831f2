// SPDX-License-Identifier: Apache-2.0
#pragma once

// Experts of gpt-oss and Gemma 4 in GGUF files, whose parts have names of their own (gpt-oss: biases
// and attention sinks; Gemma 4: experts beside an MLP). Any thread.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_family.h"
#include "saker/load/gguf/gguf_keys.h"
#include "saker/load/gguf/gguf_tensor_role.h"

#include <string_view>
#include <vector>

namespace saker::load::gguf {

// Adds sizes of experts with biases. Throws as Keys do.
void add_biased_experts(const Keys& keys, Json& config);

// Adds sizes of experts beside an MLP, if the file has some. Throws as Keys do.
void add_experts_beside(const Keys& keys, Json& config);

// The places of a tensor that only some families' experts have; empty for others. A tensor of gates
// and ups of all experts has two: each expert's rows of the gate come before those of up.
std::vector<TensorRole> named_expert_roles(const Family& family, std::string_view name);

}  // namespace saker::load::gguf
