// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes safetensors files (see safetensors.h), whole or not at all.

#include "saker/base/tensor.h"

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace saker::load {

// In the order of the file.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using FileMetadata = std::map<std::string, std::string, std::less<>>;

// Throws as AtomicFile does. REQUIRES: names differ and are UTF-8 text, as is the metadata.
void write_safetensors(
    const std::filesystem::path& path, const NamedTensors& tensors, const FileMetadata& metadata
);

}  // namespace saker::load
