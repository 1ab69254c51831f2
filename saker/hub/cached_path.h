// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a name leads to in the cache. Any thread.

#include "saker/hub/model_name.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace saker::hub {

// A model's or adapter's snapshot, or a GGUF file in it: the one that the name chooses, or, where
// it chooses none and no safetensors are there, the one that choose_gguf takes. None where it is
// not in the cache, parts of it included. Throws kInvalidArgument where several files may be meant.
std::optional<std::filesystem::path> cached_path(
    const std::filesystem::path& cache, const ModelName& name
);

// Files of a snapshot by their paths in it, sorted; links that lead nowhere are left out.
std::vector<std::string> snapshot_files(const std::filesystem::path& snapshot);

}  // namespace saker::hub
