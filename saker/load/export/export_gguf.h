// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a model as a GGUF file, as llama.cpp's convert_hf_to_gguf.py and `quantize` write it
// (docs/adr/0077-gguf-files-are-written.md). Rows stream through on all threads: memory holds a slice
// for each. The file appears whole or not at all.

#include "saker/load/convert/convert_model.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace saker::load::gguf {

struct GgufOptions {
  std::string name = {};  // For people; empty: the source's.
  // A recipe's name (gguf_recipe.h); empty: F32, F16 or BF16 as the embedding is.
  std::string type = {};
  std::filesystem::path importance = {};  // A file with an importance matrix; empty: none.
  // As in ConvertOptions.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

// Throws kInvalidArgument if the name is taken.
void check_new_file(const std::filesystem::path& target);

// Throws as check_new_file, as load_checkpoint does for the source, and kUnsupported for models that GGUF files cannot
// hold, naming what they lack. Throws kCorruptData for weights that are not finite, and for an
// importance matrix of another model.
ConvertReport export_gguf(
    const std::filesystem::path& source,
    const std::filesystem::path& target,
    const GgufOptions& options
);

}  // namespace saker::load::gguf
