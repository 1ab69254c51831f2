// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prompt-cache files: the caches of a model's layers after a prompt, as safetensors. We read both
// formats of mlx-lm and the dialects of mlx-swift and mlxrs, and write mlx-lm 0.32.2's:
//
//   tensors       "<layer>.<path>", path through the state tuple of the layer's class
//                 (mlx_lm/models/cache.py); integers and truth values are 0-d, None is F32 [0]
//                 "<layers + layer>.0", ".1" the pages of a quantized cache as Saker keeps them: a
//                 table of [index, bytes], then the bytes; mlx-lm reads as many layers as it has
//                 classes
//   metadata      "0.<key>" the caller's, "1.<layer>" class name, "2.0" "", "2.<k>.0" name and
//                 "2.<k>.1" "scalar" | "string" | "none" of the k-th tensor that is no array
//
// The older format ("classic": mlx-lm before 0.32.1, mlx-swift, mlxrs) has "0.<layer>..." meta
// strings, "1.<key>" the caller's and "2.<layer>" class names, and rows cut to the valid ones.
//
// Any file is checked as a whole before it is used. Broken files throw kCorruptData, unknown
// classes kUnsupported. Does not use MLX.

#include "saker/cache/serialized.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/files/safetensors_writer.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace saker::load {

// Maximum size of a file that we read or write.
inline constexpr std::size_t kMaxPromptCacheBytes = std::size_t{8} << 30;

enum class CacheFormat : std::uint8_t { kCurrent, kClassic };

struct PromptCache {
  CacheFormat format = CacheFormat::kCurrent;
  FileMetadata metadata;  // The caller's: "model", "tokenizer_config", ...
  std::vector<cache::SerializedCache> layers;
};

PromptCache read_prompt_cache(const std::filesystem::path& path);
// As above, from a file in memory, which the result's tensors refer to. `what` names it in
// messages.
PromptCache parse_prompt_cache(
    const TensorMap& tensors, const FileMetadata& metadata, std::string_view what
);

// Always writes the current format, readable for its owner alone. Throws as AtomicFile does, and
// kCapacity above kMaxPromptCacheBytes.
void write_prompt_cache(const std::filesystem::path& path, const PromptCache& cache);

}  // namespace saker::load
