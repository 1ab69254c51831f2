// SPDX-License-Identifier: Apache-2.0
#pragma once

// A fine-tune as a model of its own: the base's folder with an adapter's change in the weights.
// Each weight becomes w + strength * (w_adapter - w) in float32 and then takes the base's form
// again: rounded to its dtype, or quantized with its bits and groups, which rounds more than the
// same adapter at run time.

#include "saker/adapters/adapter_source.h"

#include <cstddef>
#include <filesystem>
#include <functional>
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
  std::size_t tensors = 0;
  std::size_t bytes = 0;  // Of the tensors.
};

// Writes the shards of the base with the same names, index, configuration and tokenizer (the
// adapter's own where it has one), whole or not at all. Throws as load_checkpoint, read_adapter and
// bind do, kInvalidArgument when `output` is there and no empty folder, kUnsupported when the
// adapter unties a head that this architecture always ties. REQUIRES: on the engine's thread.
FuseReport fuse(
    const std::filesystem::path& model,
    const std::filesystem::path& adapter,
    const std::filesystem::path& output,
    const FuseOptions& options
);

}  // namespace saker::adapters
