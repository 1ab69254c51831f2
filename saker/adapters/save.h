// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapters as folders that other tools read. Files are written whole or not at all, the
// configuration last.

#include "saker/adapters/adapter_source.h"

#include <filesystem>
#include <string>
#include <vector>

namespace saker::adapters {

// What a conversion did.
struct ConversionReport {
  std::vector<std::string> converted;  // Modules.
  std::vector<std::string> skipped;    // "NAME: why".
  std::size_t tensors = 0;             // Written.
};

// In mlx-lm's form, which has one rank and scale for all modules: lower ranks are filled with
// zeros, other scales go into lora_b. Biases and replaced weights have no place there and are
// skipped. Throws kUnsupported when nothing is left, and as AtomicFile does.
ConversionReport save_mlx(const AdapterSource& source, const std::filesystem::path& dir);

// In PEFT's form. The same.
ConversionReport save_peft(const AdapterSource& source, const std::filesystem::path& dir);

}  // namespace saker::adapters
