// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which files of a repository a model needs: configuration, tokenizer, chat templates and weights
// of the model itself, and of the folders draft/, adapter/, adapters/ and adapters/NAME/. Of
// weights only safetensors, those that the index names where there is one and all of them are
// there, else what lies loose. Everything else
// (pickles, GGUF, other frameworks, pictures) is left out unless a pattern asks for it. One GGUF
// model is fetched instead where a name chooses it, or where a repository holds no safetensors.

#include "saker/hub/model_name.h"
#include "saker/hub/remote_files.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::hub {

// The content of a file that describes the weights: "model.safetensors.index.json" of a folder.
using ReadIndex = std::function<std::string(const RemoteFile& index)>;

// What is small and needed first, the indexes among it. `patterns` (*, ?, [ab]; a * goes over
// slashes) take further files. `files` is sorted by path, and so is the result. Throws
// kUnsupported, naming what is there, when there are neither weights that we read nor files that
// match.
std::vector<RemoteFile> choose_small_files(
    std::span<const RemoteFile> files, std::span<const std::string> patterns
);

struct GgufFiles {
  std::string path;  // Of the model's file or first part; empty: no GGUF model is meant.
  std::vector<RemoteFile> files;  // All its parts, and what the patterns take.
};

// `wanted` is ModelName::file. Throws as choose_gguf does; `what` names the model.
GgufFiles choose_gguf_files(
    std::span<const RemoteFile> files,
    std::span<const std::string> patterns,
    std::string_view wanted,
    std::string_view what
);

// Whether it is a list of tensors and their files.
bool is_index(const RemoteFile& file);

// The weights. Throws kCorruptData when an index names files that are not there, or is none, and
// nothing lies beside it.
std::vector<RemoteFile> choose_weights(
    std::span<const RemoteFile> files, const ReadIndex& read_index
);

// What a pull fetches, as far as it is known before an index is read.
struct PullChoice {
  std::vector<RemoteFile> files;  // A GGUF model, or what comes before the weights.
  std::string gguf;               // The path of that model's file or first part, if any.
};

// Throws as the functions above do, naming the model.
PullChoice choose_files(
    std::span<const RemoteFile> files, const ModelName& name, std::span<const std::string> patterns
);

}  // namespace saker::hub
