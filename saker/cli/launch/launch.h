// SPDX-License-Identifier: Apache-2.0
#pragma once

// The command `launch`.

#include "saker/cli/options/command.h"

#include <CLI/CLI.hpp>

namespace saker::cli {

// As the functions of command.h.
void add_launch(CLI::App& app, Action& action);

}  // namespace saker::cli
