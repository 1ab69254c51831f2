// SPDX-License-Identifier: Apache-2.0
#pragma once

// A conversion's input, whatever its origin: a folder, a GGUF file, or another tool's folder.
// Threading: none.

#include "saker/base/json/json.h"
#include "saker/load/convert/conversion.h"
#include "saker/load/convert/convert_model.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/importers/lazy_tensor.h"
#include "saker/load/importers/placeholder_tensors.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace saker::load {

struct ConversionSource {
  Json config;
  TensorMap tensors;
  std::vector<std::string> warnings;
  std::filesystem::path folder;              // With texts and a draft; empty: `files`.
  std::map<std::string, std::string> files;  // Texts by name.
  std::unique_ptr<const importers::ImportedModel> imported;   // Another program's model,
  std::unique_ptr<const importers::PlaceholderTensors> made;  // and its tensors without bytes.
};

// Throws as load_checkpoint does.
ConversionSource open_source(const std::filesystem::path& path);

// The tensors as mlx-lm has them, and what becomes of each. Adds warnings to `source`. Throws as
// Conversion does, and for an unknown architecture. With `of_any_weights` floats may be dequantized,
// too. REQUIRES: `options` and `source` outlive the result.
Conversion plan_conversion(
    ConversionSource& source, const ConvertOptions& options, bool of_any_weights = false
);

}  // namespace saker::load
