// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes a model and whether we can run it.

#include "saker/load/inspect/inspect.h"

#include <filesystem>
#include <optional>

namespace saker::load {

// A folder with config.json. With `kv_bits` the result includes the caches. Throws as `inspect`.
Inspection inspect_model(
    const std::filesystem::path& path, std::optional<int> kv_bits, Weights weights
);

// A GGUF file; `kv_bits` as above.
Inspection inspect_gguf(
    const std::filesystem::path& path, std::optional<int> kv_bits, Weights weights
);

}  // namespace saker::load
