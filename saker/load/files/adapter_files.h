// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the file of a folder that holds an adapter's weights, and its format. mlx-lm and PEFT both
// write `adapter_config.json`. Some trainers write both sets of keys; then the format with complete
// settings decides. If both are complete, the file that exists decides. An adapter of llama.cpp is
// one file in GGUF. Reads no tensor.

#include "saker/base/json/json.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace saker::load {

inline constexpr std::string_view kMlxWeights = "adapters.safetensors";
inline constexpr std::string_view kMlxFormerWeights = "adapters.npz";
inline constexpr std::string_view kPeftWeights = "adapter_model.safetensors";
inline constexpr std::string_view kAdapterConfig = "adapter_config.json";

enum class AdapterForm : std::uint8_t { kMlx, kPeft, kGguf };

struct AdapterWeights {
  std::string_view file;  // One of the names above.
  AdapterForm form = AdapterForm::kMlx;
};

// `config` is the folder's configuration, or null without one. Empty if the folder holds no weights
// that can be read.
std::optional<AdapterWeights> find_adapter_weights(
    const std::filesystem::path& dir, const Json& config
);

// As above, with the folder's own configuration. Throws kCorruptData if that is no JSON.
std::optional<AdapterWeights> find_adapter_weights(const std::filesystem::path& dir);

// True for a regular file whose name ends in ".gguf".
bool is_gguf_file(const std::filesystem::path& path);

// True for a folder or a GGUF file, which may hold an adapter.
bool may_be_adapter(const std::filesystem::path& path);

// The GGUF file of a folder that holds one, and no adapter in another form. Empty for other
// folders.
std::optional<std::filesystem::path> lone_gguf_file(const std::filesystem::path& dir);

// True if the configuration has the settings that the tool needs: mlx-lm's `lora_parameters` or a
// `fine_tune_type` of whole weights; PEFT's `peft_type`.
bool has_mlx_settings(const Json& config);
bool has_peft_settings(const Json& config);

}  // namespace saker::load
