// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapters of PEFT in mlx-lm's form, converted once and kept under $XDG_CACHE_HOME, or ~/.cache if
// that is not set:
//
//   saker/adapters/KEY/            KEY: BLAKE2b-128 of adapter_model.safetensors, then of
//                                  adapter_config.json
//   dlm-sway/mlx-converted/KEY/    dlm-sway's own; KEY: of adapter_model.safetensors alone. An
//                                  entry may belong to another configuration: it counts
//                                  only if it equals the adapter's present conversion
//
// Folders appear whole or not at all. Processes that convert the same adapter wait for each other.
// Threading: any thread.

#include "saker/adapters/save.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace saker::adapters {

enum class AdapterCache : std::uint8_t { kSaker, kSway };

struct CachedAdapter {
  std::filesystem::path dir;  // Has the two files that mlx-lm reads.
  bool was_there = false;     // True: nothing was written.
  ConversionReport report;    // Empty if the adapter is mlx-lm's already.
};

// The folder of this adapter in mlx-lm's form: `dir` itself if it holds mlx-lm's
// adapters.safetensors. Throws as read_adapter and to_mlx do. Throws kNotFound if the cache's
// folder can't be written, kInvalidArgument if the adapter changes while it is read.
CachedAdapter cached_adapter(const std::filesystem::path& dir, AdapterCache cache);

// The KEY of an adapter in another form, 32 hexadecimal digits. Throws kNotFound if a file is
// missing.
std::string adapter_cache_key(const std::filesystem::path& dir, AdapterCache cache);

}  // namespace saker::adapters
