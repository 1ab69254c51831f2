// SPDX-License-Identifier: Apache-2.0
#pragma once

// The caches of a model's layers after a prompt, and their files. Files are those of mlx-lm 0.32.2
// (load/prompt_cache.h): each program reads the other's, but for QuantizedRotatingKVCache.
//
// Threading: one thread at a time, MLX's rules.

#include "saker/caches/cache.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saker::caches {

// One cache per layer, the first layer first. REQUIRES: no null pointer.
using PromptCache = std::vector<std::shared_ptr<Cache>>;

// Texts of the caller's own in a file, by name.
using Metadata = std::map<std::string, std::string, std::less<>>;

// A KVCache per layer. With a window, a RotatingKVCache of `window` rows that keeps the first
// cache::kRotatingDefaultKeep. A window of 0 or less counts as 0: such a ring takes no rows until
// `from_serialized` sets its size. Models whose layers differ build their own list.
PromptCache make_prompt_cache(int layers, std::optional<int> window = std::nullopt);

// True if all layers can drop rows at their end.
bool can_trim_prompt_cache(const PromptCache& caches);
// Drops the last rows of all layers, or none if a layer cannot; returns the first layer's number.
int trim_prompt_cache(const PromptCache& caches, int count);

// Writes a file that its owner alone can read, whole or not at all. `metadata` is the caller's own.
// Right padding that waits for `finalize` is not part of a file. Throws kInvalidArgument without
// caches, kCapacity above load::kMaxPromptCacheBytes, and what AtomicFile throws.
void save_prompt_cache(
    const std::filesystem::path& path, const PromptCache& caches, const Metadata& metadata = {}
);

// The caches of all layers, and the texts that were saved with them.
struct LoadedPromptCache {
  PromptCache caches;
  Metadata metadata;  // The caller's.
};

// Reads both formats of mlx-lm, mlx-swift's and mlxrs's. The rows are copied, so the file may
// change afterwards. Throws kNotFound, kCorruptData for a broken file, kUnsupported for an unknown
// class; messages name the file and the layer.
LoadedPromptCache load_prompt_cache(const std::filesystem::path& path);

}  // namespace saker::caches
