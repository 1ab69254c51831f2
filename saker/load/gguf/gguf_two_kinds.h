// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gemma 4's text models in GGUF files, but their experts: llama.cpp's conversion/gemma.py and
// src/models/gemma4.cpp, backwards. Sliding and full layers differ in heads and rope. The last
// layers may share rows of earlier ones and be twice as wide. Each layer may have an input of its
// own. Any thread.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_file.h"
#include "saker/load/gguf/gguf_tensor_role.h"

#include <optional>
#include <span>
#include <string_view>

namespace saker::load::gguf {

// Adds sizes of the layers, their kinds and ropes. `rope_factors` are those of full layers: 1 for
// pairs that rotate, huge for the others; empty if the values are still to come. REQUIRES: `config`
// has num_hidden_layers and vocab_size. Throws as Keys do, and kCorruptData for lists of other
// lengths and for a missing rope_freqs.weight.
void add_two_kinds(const Header& header, std::span<const float> rope_factors, Json& config);

// Empty for tensors that other families also have.
std::optional<TensorRole> two_kinds_role(std::string_view name);

}  // namespace saker::load::gguf
