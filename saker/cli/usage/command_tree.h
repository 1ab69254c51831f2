// SPDX-License-Identifier: Apache-2.0
#pragma once

// The commands of the program and their options, as CLI11 holds them: option groups are looked
// through, since a user sees one list of options.

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {

// Commands directly below, in the order of help.
std::vector<const CLI::App*> commands_of(const CLI::App& app);

// The command below `app` of this name or alias; null: none.
const CLI::App* find_command(const CLI::App& app, std::string_view name);

// All options and positionals of a command, groups included.
std::vector<const CLI::Option*> options_of(const CLI::App& command);

// "saker cache save".
std::string full_name(const CLI::App& command);

// "--max-tokens", or the positional's name; the form that messages and help use.
std::string shown_name(const CLI::Option& option);

// Whether the option is followed by a value.
bool takes_value(const CLI::Option& option);

}  // namespace saker::cli
