// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which file of a folder holds an adapter's weights, and in whose form. mlx-lm and PEFT both write
// `adapter_config.json`, and some trainers write the keys of both: the form is that of the settings
// which are complete, and where both are, that of the file that is there. No tensor is read.

#include "saker/base/json.h"

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

// `config`: of the folder, or null where it has none. None: the folder holds no weights that can be
// read.
std::optional<AdapterWeights> find_adapter_weights(
    const std::filesystem::path& dir, const Json& config
);

// The same, with the configuration that lies there. Throws kCorruptData where that is no JSON.
std::optional<AdapterWeights> find_adapter_weights(const std::filesystem::path& dir);

// Whether the configuration says what each tool needs: mlx-lm's `lora_parameters` or a
// `fine_tune_type` of whole weights, PEFT's `peft_type`.
bool has_mlx_settings(const Json& config);
bool has_peft_settings(const Json& config);

}  // namespace saker::load
