// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saker/cli/options/command.h"

#include <CLI/CLI.hpp>

namespace saker::cli {

// `saker man`.
void add_man(CLI::App& app, Action& action);

}  // namespace saker::cli
