// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a folder with a draft holds: a smaller model with weights of its own, or one that reads what
// the target gave or keeps: a DFlash draft, an MTP head, a Gemma 4 assistant. REQUIRES: called on
// the engine's thread.

#include "saker/models/dflash.h"
#include "saker/models/gemma4_assistant.h"
#include "saker/models/model.h"
#include "saker/models/mtp.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace saker::load {

struct LoadedDraft {
  // One of these.
  std::unique_ptr<const models::Model> model = nullptr;
  std::unique_ptr<const models::DflashDraft> dflash = nullptr;
  std::unique_ptr<const models::MtpHead> mtp = nullptr;
  std::unique_ptr<const models::Gemma4Assistant> assistant = nullptr;
  std::vector<std::string> warnings = {};  // One line each.
};

// The kind follows from the configuration; a head is told from its model by its tensors, which are
// all that the folder holds. Throws as load_checkpoint does; a draft that is not one
// for `target` throws kInvalidArgument before its weights are read, where it reads that target's
// layers.
LoadedDraft load_draft(const std::filesystem::path& dir, const models::ModelInfo& target);

}  // namespace saker::load
