// SPDX-License-Identifier: Apache-2.0
#pragma once

// The request options of `generate` and `run` as command-line flags.

#include "saker/base/json/json.h"
#include "saker/cli/requests/model_defaults.h"
#include "saker/engine/engine.h"
#include "saker/engine/options/request_option.h"
#include "saker/engine/request.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace saker::cli {

class RequestArgs {
 public:
  // Adds the options that have this door. REQUIRES: *this outlives the parsing of `command`.
  void add_to(CLI::App& command, bool engine::Doors::* door);

  // Throws CLI::ValidationError for values that are invalid for every model. Call it when the
  // command line is read.
  void check() const;

  // Sets the model's defaults, then the command line's options, and nothing else. Draws a seed if
  // neither gives one.
  void apply(const ModelDefaults& defaults, engine::Request& request) const;

  // True if the command line gave this option.
  bool gives(std::string_view option) const;

  // Warns about command-line options that have no effect with this model.
  void warn(const engine::Engine& engine) const;

  // The adapter of the command line, else the model's default, if it applies at full strength;
  // otherwise empty.
  std::filesystem::path whole_adapter(const ModelDefaults& defaults) const;

 private:
  void apply_given(engine::Request& request) const;

  std::map<std::string, Json, std::less<>> given_;  // By the option's name.
};

}  // namespace saker::cli
