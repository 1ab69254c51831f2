// SPDX-License-Identifier: Apache-2.0
#pragma once

// Model folders made from models in the formats of other programs.

#include "saker/load/convert/convert_model.h"
#include "saker/load/importers/lazy_tensor.h"

#include <filesystem>

namespace saker::load {

// Writes the model as a folder, whole or not at all. Throws as ModelWriter does.
ConvertReport write_imported(
    const importers::ImportedModel& model,
    const std::filesystem::path& target,
    const ConvertOptions& options
);

}  // namespace saker::load
