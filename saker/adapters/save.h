// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes adapters as folders for other tools.

#include "saker/adapters/adapter_source.h"
#include "saker/load/files/safetensors_writer.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace saker::adapters {

// The result of a conversion.
struct ConversionReport {
  std::vector<std::string> converted;  // Modules.
  std::vector<std::string> skipped;    // "NAME: why".
  std::vector<std::string> notes;      // "NAME: how the other tool differs".
  std::size_t tensors = 0;             // Number of written tensors.
};

// An adapter in mlx-lm's form: the content of its two files, and the report.
struct MlxAdapter {
  load::NamedTensors tensors;
  Json config;
  ConversionReport report;
};

// Converts to mlx-lm's form, which has one rank and scale for all modules. Lower ranks are filled
// with zeros; other scales are multiplied into lora_b. It has no place for biases, replaced weights
// and PEFT's DoRA of an embedding; these are skipped. Throws kUnsupported if nothing is left.
MlxAdapter to_mlx(const AdapterSource& source);

// Writes its two files into an existing folder. Throws as AtomicFile does.
void write_mlx(const MlxAdapter& adapter, const std::filesystem::path& dir);

// Converts and writes to a new folder, which appears whole or not at all. Throws as AtomicFolder
// does.
ConversionReport save_mlx(const AdapterSource& source, const std::filesystem::path& dir);

// As above, in PEFT's form.
ConversionReport save_peft(const AdapterSource& source, const std::filesystem::path& dir);

}  // namespace saker::adapters
