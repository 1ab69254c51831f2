// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads a model folder as a model that is ready to run. Weights are mapped. Each tensor is packed
// directly from the file and its pages are freed, so memory holds one copy. REQUIRES: called on the
// engine's thread.

#include "saker/base/json/json.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/files/weight_files.h"
#include "saker/models/model.h"
#include "saker/models/mtp.h"
#include "saker/nn/weights/weights.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saker::load {

struct LoadedCheckpoint {
  std::unique_ptr<const models::Model> model;
  std::unique_ptr<const models::MtpHead> mtp;  // Null unless wanted and present.
  Json config;                                 // config.json
  std::vector<std::string> warnings;  // One line each: unused tensors, an index that does not fit.
};

// The input that a model is made from.
struct CheckpointSource {
  Json config;
  TensorMap tensors;
  std::vector<std::string> warnings;
  nn::MakeTensor make = {};  // Makes lazy tensors, see nn::Weights.
  TensorErrors errors = {};  // Errors of tensors that can't be read.
  // Formats that the configuration can't describe, by path.
  std::map<std::string, kernels::WeightFormat> formats = {};
};

// Throws kNotFound for missing files, kUnsupported (naming field and value) for models that we
// can't run, and kCorruptData for files that break their format.
LoadedCheckpoint load_checkpoint(
    const std::filesystem::path& dir,
    const models::LoadProgress& progress = {},
    bool with_mtp = false
);

LoadedCheckpoint load_checkpoint(
    CheckpointSource source, const models::LoadProgress& progress, bool with_mtp
);

// Weights that include tensors which can't be read: taking one of those throws its error, even
// where the tensor is optional.
nn::Weights weights_of(
    TensorMap tensors,
    nn::QuantizationConfig quantization,
    std::shared_ptr<const TensorErrors> errors,
    nn::MakeTensor make = {}
);

// One line about unused tensors; empty if their names tell nothing new, as those that a model or
// assistant of this configuration never reads.
std::optional<std::string> unused_warning(std::vector<std::string> names, const Json& config);

}  // namespace saker::load
