// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model's folder for conversion and loading: its configuration, and all tensors by name.

#include "saker/base/json/json.h"
#include "saker/load/files/weight_files.h"

#include <filesystem>

namespace saker::load::importers {

struct ModelFolder {
  Json
      config;  // Without another tool's leftover section; with what sentence-transformers' files say.
  ModelTensors read;
};

// Reads only the headers of weights. Throws as read_json_file and read_model_tensors do, and
// kNotFound without a configuration or a tensor that the model surely needs.
ModelFolder read_model_folder(const std::filesystem::path& dir);

}  // namespace saker::load::importers
