// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a model folder to a model that is ready to run. Weights are mapped, each tensor is packed
// straight from the file and its pages are given back, so memory holds one copy. REQUIRES: called
// on the engine's thread.

#include "saker/base/json.h"
#include "saker/load/safetensors.h"
#include "saker/load/weight_files.h"
#include "saker/models/model.h"
#include "saker/models/mtp.h"
#include "saker/nn/weights.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saker::load {

struct LoadedCheckpoint {
  std::unique_ptr<const models::Model> model;
  std::unique_ptr<const models::MtpHead> mtp;  // Where wanted and brought along.
  Json config;                                 // config.json
  std::vector<std::string>
      warnings;  // One line each: tensors that nothing uses, an index that does not fit.
};

// What a model is made from.
struct CheckpointSource {
  Json config;
  TensorMap tensors;
  std::vector<std::string> warnings;
  nn::MakeTensor make = {};  // Of tensors that are announced only, see nn::Weights.
  TensorErrors errors = {};  // Of tensors that can't be read.
};

// Throws kNotFound for missing files, kUnsupported naming field and value for what we can't run,
// kCorruptData for files that break their format.
LoadedCheckpoint load_checkpoint(
    const std::filesystem::path& dir,
    const models::LoadProgress& progress = {},
    bool with_mtp = false
);

LoadedCheckpoint load_checkpoint(
    CheckpointSource source, const models::LoadProgress& progress, bool with_mtp
);

// Weights with the tensors that can't be read: who takes one, or one that only may be there, gets
// its error.
nn::Weights weights_of(
    TensorMap tensors,
    nn::QuantizationConfig quantization,
    std::shared_ptr<const TensorErrors> errors,
    nn::MakeTensor make = {}
);

// One line about tensors that nothing took; none about those that say nothing new.
std::optional<std::string> unused_warning(std::vector<std::string> names);

}  // namespace saker::load
