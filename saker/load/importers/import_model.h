// SPDX-License-Identifier: Apache-2.0
#pragma once

// Models in the formats of other programs, and model folders made from them.

#include "saker/load/convert/convert_model.h"
#include "saker/load/importers/lazy_tensor.h"

#include <filesystem>
#include <optional>

namespace saker::load::importers {

// The model that `source` holds in another format than MLX's: a file in GGUF, or a folder with
// another tool's quantization. None for everything else. Throws as open_gguf and open_quantized do.
std::optional<ImportedModel> open_imported(const std::filesystem::path& source);

// Whether it does; reads the configuration, and the headers of weights where it names a tool.
bool is_imported(const std::filesystem::path& source);

// Writes the model as a folder, whole or not at all. Throws as ModelWriter does.
ConvertReport write_imported(
    const ImportedModel& model, const std::filesystem::path& target, const ConvertOptions& options
);

}  // namespace saker::load::importers
