// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a named model asks for by itself: request options, an adapter, how its chats begin. Other
// models ask for nothing.

#include "saker/base/json.h"
#include "saker/engine/request.h"
#include "saker/load/named_models.h"

#include <filesystem>
#include <string>

namespace saker::cli {

class ModelDefaults {
 public:
  // `model` as the command line names it. Throws as resolve_model and read_settings do.
  explicit ModelDefaults(const std::string& model);

  // Sets options and adapter.
  void apply(engine::GenerateRequest& request) const;

  // Whether it asks for this option.
  bool gives(const std::string& option) const { return settings_.options.contains(option); }

  // Its own adapter; empty: none.
  std::filesystem::path adapter() const;

  // The first messages of a chat: the system's, `system` where it is not empty, and what follows.
  Json opening(const std::string& system) const;

 private:
  std::filesystem::path path_;
  load::ModelSettings settings_;
};

}  // namespace saker::cli
