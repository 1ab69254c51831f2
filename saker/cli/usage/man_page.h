// SPDX-License-Identifier: Apache-2.0
#pragma once

// The manual page, generated from all commands' help, so that both agree.

#include "saker/cli/options/command.h"

#include <CLI/CLI.hpp>

#include <string>

namespace saker::cli {

// In man's own language (roff).
std::string man_page(const CLI::App& app);

// `saker man`.
void add_man(CLI::App& app, Action& action);

}  // namespace saker::cli
