// SPDX-License-Identifier: Apache-2.0
#pragma once

// A fine-tune as a model of its own: the base's folder with an adapter's change in the weights.
// Each weight becomes w + strength * (w_adapter - w) in float32 and then takes the base's form
// again: rounded to its dtype, or quantized with its bits and groups, which rounds more than the
// same adapter at run time.

#include "saker/load/checkpoint.h"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace saker::adapters {

struct FuseOptions {
  float strength = 1.0F;
  std::function<void(std::size_t done, std::size_t total)> progress;  // Tensors.
};

struct FuseReport {
  std::vector<std::string> fused;  // Modules.
  // Tensors that the base lacks: biases, or the head of an embedding that was tied to it.
  std::vector<std::string> added;
  std::vector<std::string> warnings;  // Of loading base and adapter.
  std::size_t tensors = 0;
  std::size_t bytes = 0;  // Of the tensors.
};

// Writes the shards of the base with the same names, index, configuration and tokenizer (the
// adapter's own where it has one), whole or not at all. Throws as Fusion does, kInvalidArgument
// when `output` is there and no empty folder. REQUIRES: on the engine's thread.
FuseReport fuse(
    const std::filesystem::path& model,
    const std::filesystem::path& adapter,
    const std::filesystem::path& output,
    const FuseOptions& options
);

struct FusedCheckpoint {
  load::LoadedCheckpoint loaded;
  std::string adapter_identity;  // See AdapterSource.
};

// The model that `fuse` would write at strength 1, with the same bits and without a folder: a
// module is fused when its layer is built, so that memory holds one model and a module. Throws as
// Fusion does. REQUIRES: on the engine's thread.
FusedCheckpoint load_fused(
    const std::filesystem::path& model,
    const std::filesystem::path& adapter,
    const models::LoadProgress& progress = {},
    bool with_mtp = false
);

// Which file is each of those that describe text (tokenizer, chat template, generation) in a fused
// model: the base's, and over them the adapter's where it has a tokenizer. By name.
std::map<std::string, std::filesystem::path> fused_texts(
    const std::filesystem::path& model, const std::filesystem::path& adapter
);

}  // namespace saker::adapters
