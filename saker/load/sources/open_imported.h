// SPDX-License-Identifier: Apache-2.0
#pragma once

// Opens models in other programs' formats, whatever the format.

#include "saker/load/importers/lazy_tensor.h"

#include <filesystem>
#include <optional>

namespace saker::load::importers {

// Opens `source` if its format is not MLX's: a GGUF file, or a folder quantized by another tool.
// Empty for everything else. Throws as open_gguf and open_quantized do.
std::optional<ImportedModel> open_imported(const std::filesystem::path& source);

// True if open_imported would open it. Reads the configuration, and the headers of weights if that
// names a tool.
bool is_imported(const std::filesystem::path& source);

}  // namespace saker::load::importers
