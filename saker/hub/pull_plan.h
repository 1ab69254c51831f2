// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses the files of a repository that a model needs: configuration, tokenizer, chat templates
// and weights. They come from the model's own folder and from draft/, adapter/, adapters/ and
// adapters/NAME/.
//
// Only safetensors are weights: the files that the index names. All loose ones are added if it
// names missing files, and taken if there is no index. Everything else (pickles, GGUF, other
// frameworks, pictures) is left out unless a pattern asks for it. One GGUF model is fetched instead
// if the name chooses it, or if the repository has no safetensors.

#include "saker/hub/model_name.h"
#include "saker/hub/remote_files.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::hub {

// Returns the content of an index of weights, such as a folder's "model.safetensors.index.json".
using ReadIndex = std::function<std::string(const RemoteFile& index)>;

// The small files, which are needed first, indexes included. `patterns` (*, ?, [ab]; a * also
// matches slashes) add further files. `files` is sorted by path, and so is the result. Throws
// kUnsupported, naming what is there, if there are neither weights that we read nor matching files.
std::vector<RemoteFile> choose_small_files(
    std::span<const RemoteFile> files, std::span<const std::string> patterns
);

struct GgufFiles {
  std::string path;               // The model's file or its first part; empty: no GGUF model.
  std::vector<RemoteFile> files;  // All its parts, and files that match the patterns.
};

// `wanted` is ModelName::file. Throws as choose_gguf does; `what` names the model.
GgufFiles choose_gguf_files(
    std::span<const RemoteFile> files,
    std::span<const std::string> patterns,
    std::string_view wanted,
    std::string_view what
);

// True for an index: a list of tensors and their files.
bool is_index(const RemoteFile& file);

// The weights. Throws kCorruptData if an index is invalid or names missing files, and there are no
// loose weights beside it.
std::vector<RemoteFile> choose_weights(
    std::span<const RemoteFile> files, const ReadIndex& read_index
);

// The files that a pull fetches, as far as they are known before an index is read.
struct PullChoice {
  std::vector<RemoteFile> files;  // A GGUF model, or the files that precede the weights.
  std::string gguf;               // The path of that model's file or first part, if any.
};

// Throws as the functions above do, naming the model.
PullChoice choose_files(
    std::span<const RemoteFile> files, const ModelName& name, std::span<const std::string> patterns
);

}  // namespace saker::hub
