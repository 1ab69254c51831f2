// SPDX-License-Identifier: Apache-2.0
#pragma once

// The program's command line: all commands with their options, for help, completion and the parser.

#include "saker/cli/options/command.h"

#include <CLI/CLI.hpp>

namespace saker::cli {

// Adds everything to `app`. REQUIRES: `action` outlives the parsing.
void add_commands(CLI::App& app, Action& action);

}  // namespace saker::cli
