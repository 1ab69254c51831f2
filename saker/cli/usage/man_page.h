// SPDX-License-Identifier: Apache-2.0
#pragma once

// Manual pages, from the table of commands and options: saker(1), and one page for each command.

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace saker::cli {

// A command's page in man's own language (roff).
std::string man_page(const CLI::App& command);

// "saker-cache-save": a page's name without its section.
std::string man_page_name(const CLI::App& command);

// The program and all its commands, those below others too.
std::vector<const CLI::App*> all_commands(const CLI::App& app);

}  // namespace saker::cli
