// SPDX-License-Identifier: Apache-2.0
#pragma once

// Configurations that still name another tool's quantization over weights that are plain again, as
// training on quantized models and merging adapters into them leave them. Pure.

#include "saker/base/json.h"
#include "saker/load/weight_files.h"

#include <string>

namespace saker::load::importers {

// Whether nothing holds codes: no matrix is of integers, of small floats or of a dtype that can't
// be loaded.
bool are_plain(const ModelTensors& read);

struct PlainConfig {
  Json config;
  std::string warning;  // One line where a section was taken out; else empty.
};

// `config` without the `quantization_config` of another tool where all weights are plain. MLX's own
// section stays: who builds layers looks at their tensors.
PlainConfig without_leftover(Json config, const ModelTensors& read);

}  // namespace saker::load::importers
