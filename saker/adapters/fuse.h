// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fuses an adapter into its base as a model of its own. Each weight becomes w + strength *
// (w_adapter - w) in float32 and then takes the base's form again. It is rounded to its dtype, or
// quantized with its bits and groups, which rounds more than the same adapter at run time.

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
  // Tensors that the base lacks: biases, or the head of an embedding that was tied.
  std::vector<std::string> added;
  std::vector<std::string> warnings;  // From loading base and adapter.
  std::size_t tensors = 0;
  std::size_t bytes = 0;  // All tensors.
};

// Writes the base's shards with the same names, index, configuration and tokenizer (the adapter's
// own if it has one), whole or not at all. Throws as Fusion does, and kInvalidArgument if `output`
// exists and is no empty folder. REQUIRES: on the engine's thread.
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

// Loads the model that `fuse` would write at strength 1, with the same bits, but without writing a
// folder. A module is fused when its layer is built, so memory holds one model and one module.
// Throws as Fusion does. REQUIRES: on the engine's thread.
FusedCheckpoint load_fused(
    const std::filesystem::path& model,
    const std::filesystem::path& adapter,
    const models::LoadProgress& progress = {},
    bool with_mtp = false
);

// The files that describe text (tokenizer, chat template, generation) in a fused model, by name:
// the base's, replaced by the adapter's if that has a tokenizer.
std::map<std::string, std::filesystem::path> fused_texts(
    const std::filesystem::path& model, const std::filesystem::path& adapter
);

}  // namespace saker::adapters
