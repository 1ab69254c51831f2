// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weights of a model folder: which safetensors files hold them, and all tensors by name. The
// index
// (`model.safetensors.index.json`) decides where there is one; else all `model*.safetensors`. A
// file that the index or a shard's own name ("model-00001-of-00003") promises must be there, as
// must every tensor that the index lists.

#include "saker/load/safetensors.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

struct WeightFiles {
  std::vector<std::filesystem::path> paths;  // Sorted by name.
  // The index's shard of each tensor; empty without an index.
  std::map<std::string, std::filesystem::path, std::less<>> shard_of;
  std::vector<std::string> warnings;
};

// Throws kNotFound when files are missing, naming them, and kCorruptData for a broken index.
WeightFiles find_weight_files(const std::filesystem::path& dir);

// Views of all tensors; nothing is read but the headers. Throws kCorruptData when a name is in two
// files, or not in the shard that the index names.
TensorMap read_weight_files(const WeightFiles& files);

// A model's folder and what its files hold. Ollama keeps a draft's tensors beside its model's,
// under "draft.": they are those of the folder `draft` that has only a configuration, and no one
// else's.
struct ModelTensors {
  TensorMap tensors;
  std::vector<std::string> warnings;
};

bool is_of_draft(std::string_view tensor);

// Throws as the two above.
ModelTensors read_model_tensors(const std::filesystem::path& dir);

// Of all of them, sorted.
std::vector<std::string> tensor_names(const TensorMap& tensors);

}  // namespace saker::load
