// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the file of a folder that holds an adapter's weights, and its format. mlx-lm and PEFT both
// write `adapter_config.json`. Some trainers write both sets of keys; then the format with complete
// settings decides. If both are complete, the file that exists decides. Reads no tensor.

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

enum class AdapterForm : std::uint8_t { kMlx, kPeft };

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

// True if the configuration has the settings that the tool needs: mlx-lm's `lora_parameters` or a
// `fine_tune_type` of whole weights; PEFT's `peft_type`.
bool has_mlx_settings(const Json& config);
bool has_peft_settings(const Json& config);

}  // namespace saker::load
