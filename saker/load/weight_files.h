// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weights of a model folder: which safetensors files hold them, and all tensors by name. The
// index (`model.safetensors.index.json`) decides between files that hold the same tensor. It is
// otherwise taken as people leave it behind: an index that is broken, or of none of the files that
// are there, is ignored, what it leaves out is read from `model*.safetensors` beside its files, and
// what it promises may be missing as long as nothing needs it. Without one, all
// `model*.safetensors` count, and all that a file's own name promises ("model-00001-of-00003") must
// be there.

#include "saker/base/error.h"
#include "saker/base/json.h"
#include "saker/load/safetensors.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

inline constexpr std::string_view kIndexName = "model.safetensors.index.json";

struct WeightFiles {
  std::vector<std::filesystem::path> paths;  // Sorted by name.
  // The index's shard of each tensor; empty without an index.
  std::map<std::string, std::filesystem::path, std::less<>> shard_of;
  std::vector<std::filesystem::path> unlisted;  // Beside the index's files, sorted by name.
  std::vector<std::string> warnings;
};

// Throws kNotFound where no file is there, or where one that a shard's own name promises is not,
// and kCorruptData for a broken index.
WeightFiles find_weight_files(const std::filesystem::path& dir);

// Tensors that can't be read: what who asks for one is told.
using TensorErrors = std::map<std::string, Error, std::less<>>;

// What a model's files hold.
struct ModelTensors {
  TensorMap tensors;
  std::map<std::string, std::filesystem::path, std::less<>> file_of;  // Of each tensor.
  // Of names that the index promises and no file holds (kNotFound), of dtypes that can't be loaded
  // (kUnsupported), and of names that are in several unlisted files (kCorruptData).
  TensorErrors errors;
  std::vector<std::string> warnings;  // Those of the files too.
};

// Views of all tensors; nothing is read but the headers. Throws kCorruptData when a name is in two
// files and the index does not decide.
ModelTensors read_weight_files(const WeightFiles& files);

bool is_of_draft(std::string_view tensor);

// Those of a model's folder. Ollama keeps a draft's tensors beside its model's, under "draft.":
// they are those of the folder `draft` that has only a configuration, and no one else's. Throws as
// the two above.
ModelTensors read_model_tensors(const std::filesystem::path& dir);

// Throws the error of a missing tensor that the model surely needs: one that another of its layers
// has, its token table or last norm. What is missing otherwise, a layer that asks for it names.
void check_complete(const ModelTensors& read, const Json& config);
// Throws the first error of all tensors of the model's layers.
void check_layers(const ModelTensors& read, const Json& config);

// The first few for a message, and how many more there are.
std::string list_names(const std::vector<std::string>& names);

// Of all of them, sorted.
std::vector<std::string> tensor_names(const TensorMap& tensors);

}  // namespace saker::load
