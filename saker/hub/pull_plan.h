// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which files of a repository a model needs: configuration, tokenizer, chat templates and weights
// of the model itself, and of the folders draft/, adapter/, adapters/ and adapters/NAME/. Of
// weights only safetensors, those that the index names where there is one and all of them are
// there, else what lies loose. Everything else
// (pickles, GGUF, other frameworks, pictures) is left out unless a pattern asks for it.

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

// The weights. Throws kCorruptData when an index names files that are not there, or is none, and
// nothing lies beside it.
std::vector<RemoteFile> choose_weights(
    std::span<const RemoteFile> files, const ReadIndex& read_index
);

}  // namespace saker::hub
