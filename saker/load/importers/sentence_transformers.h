// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of sentence-transformers beside a model (https://sbert.net): modules.json and a folder
// for each module. What they say becomes the configuration's section of models/embedding_config.h,
// and dense layers become tensors "dense.0.weight", ... of the model. Files that cannot be used do
// not stop the model: the section holds the reason, for those who ask for vectors.

#include "saker/base/json/json.h"
#include "saker/load/files/weight_files.h"

#include <filesystem>

namespace saker::load::importers {

// Changes nothing if there is no modules.json.
void add_sentence_transformers(
    const std::filesystem::path& dir, Json& config, ModelTensors& tensors
);

}  // namespace saker::load::importers
