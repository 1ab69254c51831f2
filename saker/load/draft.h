// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads a draft from its folder: a smaller model with its own weights, or a draft that uses the
// target's hidden states or caches (a DFlash draft, an EAGLE-3 head, an MTP head, an assistant). REQUIRES:
// called on the engine's thread.

#include "saker/base/json/json.h"
#include "saker/models/assistant.h"
#include "saker/models/dflash.h"
#include "saker/models/eagle3.h"
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
  // Exactly one of these is set.
  std::unique_ptr<const models::Model> model = nullptr;
  std::unique_ptr<const models::DflashDraft> dflash = nullptr;
  std::unique_ptr<const models::Eagle3Head> eagle3 = nullptr;
  std::unique_ptr<const models::MtpHead> mtp = nullptr;
  std::unique_ptr<const models::AssistantDraft> assistant = nullptr;
  std::vector<std::string> warnings = {};  // One line each.
};

// The kind of a draft that runs only beside its model, by its configuration and tensor names:
// "DFlash draft", "EAGLE-3 head", "assistant" or "MTP head". Empty: a model, possibly a small one.
std::string_view draft_kind(const Json& config, std::span<const std::string> tensors);

// The configuration gives the kind. A head has its model's configuration, but only the head's
// tensors. Throws as load_checkpoint does. Throws kInvalidArgument, before weights are read, if a
// draft that reads the target's layers does not fit `target`.
LoadedDraft load_draft(const std::filesystem::path& dir, const models::ModelInfo& target);

}  // namespace saker::load
