// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weights of a model folder: the safetensors files that hold them, and all tensors by name. The
// index (`model.safetensors.index.json`) decides between files that hold the same tensor. Otherwise
// it is read leniently:
//   - An index that is broken, or names none of the files, is ignored.
//   - Tensors that it leaves out are read from `model*.safetensors` beside its files.
//   - Tensors that it promises may be missing as long as nothing needs them.
// Without an index all `model*.safetensors` count. All files that a file's own name promises
// ("model-00001-of-00003") must exist.

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/load/files/safetensors.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

inline constexpr std::string_view kIndexName = "model.safetensors.index.json";

struct WeightFiles {
  std::vector<std::filesystem::path> paths;  // Sorted by name.
  // The shard of each tensor by the index; empty without an index.
  std::map<std::string, std::filesystem::path, std::less<>> shard_of;
  std::vector<std::filesystem::path> unlisted;  // Files beside the index's, sorted by name.
  std::vector<std::string> warnings;
};

// Throws kNotFound if there is no file, or one that a shard's own name promises is missing, and
// kCorruptData for a broken index.
WeightFiles find_weight_files(const std::filesystem::path& dir);

// Tensors that can't be read, and the error for code that asks for one.
using TensorErrors = std::map<std::string, Error, std::less<>>;

// The content of a model's files.
struct ModelTensors {
  TensorMap tensors;
  std::map<std::string, std::filesystem::path, std::less<>> file_of;  // The file of each tensor.
  // Errors by name (kNotFound: the index promises it and no file has it; kUnsupported: its dtype
  // can't be loaded; kCorruptData: it is in several unlisted files).
  TensorErrors errors;
  std::vector<std::string> warnings;  // Includes those of the files.
};

// Views of all tensors; reads only the headers. Throws kCorruptData if a name is in two files and
// the index does not decide.
ModelTensors read_weight_files(const WeightFiles& files);

bool is_of_draft(std::string_view tensor);

// The tensors of a model's folder. Ollama keeps a draft's tensors beside its model's, under
// "draft.". They belong only to the folder `draft` that has just a configuration. Throws as the two
// functions above.
ModelTensors read_model_tensors(const std::filesystem::path& dir);

// Throws the error of a missing tensor that the model surely needs: a token table, a last norm, or
// a tensor that another of its layers has. A layer that needs any other missing tensor reports it.
void check_complete(const ModelTensors& read, const Json& config);
// Throws the first error among the tensors of the model's layers.
void check_layers(const ModelTensors& read, const Json& config);

// The first few names for a message, and how many more there are.
std::string list_names(const std::vector<std::string>& names);

// All names, sorted.
std::vector<std::string> tensor_names(const TensorMap& tensors);

}  // namespace saker::load
