// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defaults of options, in this order: from the environment (SAKER_TEMPERATURE=0.7), then from the user's
// configuration file. Typed options override both.

#include "saker/cli/usage/config_file.h"
#include "saker/cli/usage/typed_line.h"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace saker::cli {

// An option that was not typed, and the source of its value.
struct TakenDefault {
  const CLI::Option* option = nullptr;
  std::string source;  // "SAKER_TEMPERATURE", or the file's path.
};

// Adds defaults for the chosen command to `line`: from the environment, and from `config`, the
// entries of `source`. Skips an option whose required options are missing or that excludes a given
// one. Options about one prompt or one output have no defaults. Throws kInvalidArgument for an
// entry that is no option of its command.
std::vector<TakenDefault> add_defaults(
    const CLI::App& app,
    TypedLine& line,
    const std::vector<ConfigEntry>& config,
    const std::string& source
);

}  // namespace saker::cli
