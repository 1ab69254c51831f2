// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a folder with a draft holds: a smaller model with weights of its own, or one that reads what
// the target gave or keeps: a DFlash draft, an MTP head, a Gemma 4 assistant. REQUIRES: called on
// the engine's thread.

#include "saker/base/json.h"
#include "saker/models/dflash.h"
#include "saker/models/gemma4_assistant.h"
#include "saker/models/model.h"
#include "saker/models/mtp.h"

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
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

// What runs beside its model only, by its configuration and the names of its tensors: "DFlash
// draft", "Gemma 4 assistant" or "MTP head"; empty: a model, maybe a small one.
std::string_view draft_kind(const Json& config, std::span<const std::string> tensors);

// The kind follows from the configuration; a head is told from its model by its tensors, which are
// all that the folder holds. Throws as load_checkpoint does; a draft that is not one
// for `target` throws kInvalidArgument before its weights are read, where it reads that target's
// layers.
LoadedDraft load_draft(const std::filesystem::path& dir, const models::ModelInfo& target);

}  // namespace saker::load
