// SPDX-License-Identifier: Apache-2.0
#pragma once

// Help texts: options in groups, the most used first, at most 100 columns, with examples.

#include <CLI/CLI.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace saker::cli {

inline constexpr std::size_t kHelpWidth = 100;

// The output of `--help` for a command, or for the program.
std::string help_of(const CLI::App& command);

// "saker bench [MODEL] [OPTIONS]".
std::string usage_of(const CLI::App& command);

// Example lines for a command by its full name ("saker cache save"); empty: none.
std::string_view examples_of(std::string_view full_name);

}  // namespace saker::cli
