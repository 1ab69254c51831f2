// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapters as folders that other tools read.

#include "saker/adapters/adapter_source.h"
#include "saker/load/safetensors_writer.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace saker::adapters {

// What a conversion did.
struct ConversionReport {
  std::vector<std::string> converted;  // Modules.
  std::vector<std::string> skipped;    // "NAME: why".
  std::vector<std::string> notes;      // "NAME: what the other tool does with it".
  std::size_t tensors = 0;             // Written.
};

// An adapter in mlx-lm's form: its two files, and what became of the modules.
struct MlxAdapter {
  load::NamedTensors tensors;
  Json config;
  ConversionReport report;
};

// In mlx-lm's form, which has one rank and scale for all modules: lower ranks are filled with
// zeros, other scales go into lora_b. Biases, replaced weights and PEFT's DoRA of an embedding have
// no place there and are skipped. Throws kUnsupported when nothing is left.
MlxAdapter to_mlx(const AdapterSource& source);

// Its two files in a folder that is there. Throws as AtomicFile does.
void write_mlx(const MlxAdapter& adapter, const std::filesystem::path& dir);

// Both, in a new folder, which appears whole or not at all. Throws as AtomicFolder does.
ConversionReport save_mlx(const AdapterSource& source, const std::filesystem::path& dir);

// In PEFT's form. The same.
ConversionReport save_peft(const AdapterSource& source, const std::filesystem::path& dir);

}  // namespace saker::adapters
