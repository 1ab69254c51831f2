// SPDX-License-Identifier: Apache-2.0
#pragma once

// The head that drafts tokens (models/mtp.h) in GGUF files: `nextn_predict_layers` blocks behind
// the model's last layer (llama.cpp, conversion/qwen.py and src/models/qwen35.cpp). Columns of its
// first matrix have the folder's order: the token's embedding, then the hidden state. Any thread.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_file.h"
#include "saker/load/gguf/gguf_keys.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace saker::load::gguf {

// The head's layer, from 0, that a block of the file is. Empty for the model's layers and for
// blocks that the file does not count. Throws as layer_count() does.
std::optional<std::int64_t> draft_head_layer(const Keys& keys, std::int64_t block);

// Path of a module that only the head has, "mtp.fc" for "nextn.eh_proj"; empty for others.
std::optional<std::string> draft_head_path(std::int64_t layer, std::string_view part);

// Adds the head's number of layers if the file has its tensors.
void add_draft_head(const Header& header, const Keys& keys, Json& config);

}  // namespace saker::load::gguf
