// SPDX-License-Identifier: Apache-2.0
#pragma once

// Removes leftover quantization sections: configurations that still name another tool's
// quantization although the weights are plain again. Training quantized models, or merging adapters
// into them, leaves such configurations. Pure functions.

#include "saker/base/json/json.h"
#include "saker/load/files/weight_files.h"

#include <string>
#include <string_view>

namespace saker::load::importers {

// The member of a configuration where other tools say how they quantized.
inline constexpr std::string_view kQuantizationSection = "quantization_config";

// True if no tensor holds codes: no matrix has integers, small floats or a dtype that can't be
// loaded.
bool are_plain(const ModelTensors& read);

struct PlainConfig {
  Json config;
  std::string warning;  // One line if a section was removed; else empty.
};

// `config` without another tool's `quantization_config` if all weights are plain. MLX's own section
// stays: code that builds layers looks at their tensors.
PlainConfig without_leftover(Json config, const ModelTensors& read);

}  // namespace saker::load::importers
