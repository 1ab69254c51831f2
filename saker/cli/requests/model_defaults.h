// SPDX-License-Identifier: Apache-2.0
#pragma once

// A named model's defaults: request options, an adapter, the opening of its chats. Other models
// have none.

#include "saker/base/json/json.h"
#include "saker/engine/request.h"
#include "saker/load/files/named_models.h"

#include <filesystem>
#include <string>

namespace saker::cli {

class ModelDefaults {
 public:
  // `model` is the name on the command line. Throws as resolve_model and read_settings do.
  explicit ModelDefaults(const std::string& model);

  // Sets options and adapter.
  void apply(engine::Request& request) const;

  // True if the model sets this option.
  bool gives(const std::string& option) const { return settings_.options.contains(option); }

  // Its own adapter; empty: none.
  std::filesystem::path adapter() const;

  // The first messages of a chat: the system's (`system` unless empty), and those that follow.
  Json opening(const std::string& system) const;

 private:
  std::filesystem::path path_;
  load::ModelSettings settings_;
};

}  // namespace saker::cli
