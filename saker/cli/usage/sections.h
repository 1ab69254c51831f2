// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arguments and options of a command in sections, from the table of commands and options. Help, man pages and
// docs/commands.md show the same sections.

#include <CLI/CLI.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {

struct HelpRow {
  std::string name;  // "-n, --max-tokens INT", "[MODEL]", or a command.
  std::string text;
};

struct HelpSection {
  std::string title;  // "Sampling"
  std::vector<HelpRow> rows;
};

// Commands below `command`, then its arguments and options in groups, the most used first.
std::vector<HelpSection> sections_of(const CLI::App& command);

// "[MODEL]": a positional's name; for pairs it is their type.
std::string argument_name(const CLI::Option& option);

// Breaks `text` into lines of at most `width`.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

}  // namespace saker::cli
