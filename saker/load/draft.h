// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a folder with a draft holds: a smaller model with weights of its own, or a DFlash draft that
// reads the target's layers. REQUIRES: called on the engine's thread.

#include "saker/models/dflash.h"
#include "saker/models/model.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace saker::load {

struct LoadedDraft {
  // One of the two.
  std::unique_ptr<const models::Model> model;
  std::unique_ptr<const models::DflashDraft> dflash;
  std::vector<std::string> warnings;  // One line each.
};

// The kind follows from the configuration. Throws as load_checkpoint does; a draft that is not one
// for `target` throws kInvalidArgument before its weights are read, where it reads that target's
// layers.
LoadedDraft load_draft(const std::filesystem::path& dir, const models::ModelInfo& target);

}  // namespace saker::load
