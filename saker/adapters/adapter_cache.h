// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapters of PEFT in mlx-lm's form, converted once and kept under $XDG_CACHE_HOME, or ~/.cache
// where that is not set:
//
//   saker/adapters/KEY/            KEY: BLAKE2b-128 of adapter_model.safetensors and, after it,
//                                  adapter_config.json
//   dlm-sway/mlx-converted/KEY/    dlm-sway's own; KEY: of adapter_model.safetensors alone, so that
//                                  what lies there may belong to another configuration: it counts
//                                  only where it is what the adapter becomes now
//
// Folders appear whole or not at all, and processes that convert the same adapter wait for each
// other. Threading: any thread.

#include "saker/adapters/save.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace saker::adapters {

enum class AdapterCache : std::uint8_t { kSaker, kSway };

struct CachedAdapter {
  std::filesystem::path dir;  // With the two files that mlx-lm reads.
  bool was_there = false;     // Nothing was written.
  ConversionReport report;    // Empty for an adapter that is mlx-lm's already.
};

// The folder of this adapter in mlx-lm's form: itself where it holds mlx-lm's adapters.safetensors.
// Throws as read_adapter and to_mlx do, kNotFound when the cache's folder can't be written, and
// kInvalidArgument when the adapter changes while it is read.
CachedAdapter cached_adapter(const std::filesystem::path& dir, AdapterCache cache);

// The KEY of an adapter in another form, 32 hexadecimal digits. Throws kNotFound when a file is
// missing.
std::string adapter_cache_key(const std::filesystem::path& dir, AdapterCache cache);

}  // namespace saker::adapters
