// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds a named model in the cache. Any thread.

#include "saker/hub/model_name.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace saker::hub {

// The snapshot of a model or adapter, or the GGUF file in it that the name chooses. Without a
// choice and without safetensors, the GGUF file is the one that choose_gguf takes. Empty if the
// model or a part of it is not in the cache. Throws kInvalidArgument if several files match.
std::optional<std::filesystem::path> cached_path(
    const std::filesystem::path& cache, const ModelName& name
);

// Paths of a snapshot's files, relative to it and sorted; dangling links are left out.
std::vector<std::string> snapshot_files(const std::filesystem::path& snapshot);

}  // namespace saker::hub
