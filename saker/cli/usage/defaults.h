// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defaults of options from the environment (SAKER_TEMP=0.7) and from the user's configuration file,
// in this order: what was typed comes before both.

#include "saker/cli/usage/config_file.h"
#include "saker/cli/usage/typed_line.h"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace saker::cli {

// An option that was not typed, and where its value comes from.
struct TakenDefault {
  const CLI::Option* option = nullptr;
  std::string source;  // "SAKER_TEMP", or the file's path.
};

// Adds to `line` what the chosen command takes of the environment and of `config`, the entries of
// `source`. An option that goes only with others, or not with them, is left out where that is so.
// What concerns one prompt or one output has no default. Throws kInvalidArgument for an entry that
// is no option of its command.
std::vector<TakenDefault> add_defaults(
    const CLI::App& app,
    TypedLine& line,
    const std::vector<ConfigEntry>& config,
    const std::string& source
);

}  // namespace saker::cli
