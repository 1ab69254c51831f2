// SPDX-License-Identifier: Apache-2.0
#pragma once

// The program's commands and options in CLI11. Option groups are flattened, since users see one
// list of options.

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {

// The hidden option of commands that hand on what follows `--`; the typed line gives it each word.
inline constexpr std::string_view kRestOption = "--rest";

// Direct subcommands, in the order of help.
std::vector<const CLI::App*> commands_of(const CLI::App& app);

// The subcommand of `app` with this name or alias, or null.
const CLI::App* find_command(const CLI::App& app, std::string_view name);

// All options and positionals of a command, groups included.
std::vector<const CLI::Option*> options_of(const CLI::App& command);

// "saker cache save".
std::string full_name(const CLI::App& command);

// "--max-tokens", or the positional's name, as in messages and help.
std::string shown_name(const CLI::Option& option);

// True if the option is followed by a value.
bool takes_value(const CLI::Option& option);

}  // namespace saker::cli
