// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prompt-cache files: what the layers of a model keep of a prompt, as safetensors. Read are both
// formats of mlx-lm and the dialects of mlx-swift and mlxrs; written is mlx-lm 0.32.2's:
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
// Any file is checked whole before anything of it is used; broken ones throw kCorruptData, classes
// that we don't know kUnsupported. No MLX is touched.

#include "saker/cache/serialized.h"
#include "saker/load/safetensors.h"
#include "saker/load/safetensors_writer.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace saker::load {

// A file at most, read or written.
inline constexpr std::size_t kMaxPromptCacheBytes = std::size_t{8} << 30;

enum class CacheFormat : std::uint8_t { kCurrent, kClassic };

struct PromptCache {
  CacheFormat format = CacheFormat::kCurrent;
  FileMetadata metadata;  // The caller's: "model", "tokenizer_config", ...
  std::vector<cache::SerializedCache> layers;
};

PromptCache read_prompt_cache(const std::filesystem::path& path);
// The same from a file in memory, which the result's tensors refer to; `what` names it in messages.
PromptCache parse_prompt_cache(
    const TensorMap& tensors, const FileMetadata& metadata, std::string_view what
);

// Always in the current format, for its owner alone. Throws as AtomicFile does, kCapacity above
// kMaxPromptCacheBytes.
void write_prompt_cache(const std::filesystem::path& path, const PromptCache& cache);

}  // namespace saker::load
