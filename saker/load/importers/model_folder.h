// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model's folder as conversions and loading take it: its configuration, and all tensors by name.

#include "saker/base/json.h"
#include "saker/load/weight_files.h"

#include <filesystem>

namespace saker::load::importers {

struct ModelFolder {
  Json config;  // Without what another tool's quantization left behind.
  ModelTensors read;
};

// Reads no weights but their headers. Throws as read_json_file and read_model_tensors do, kNotFound
// without a configuration or a tensor that the model surely needs.
ModelFolder read_model_folder(const std::filesystem::path& dir);

}  // namespace saker::load::importers
