// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/help.h"

#include "saker/cli/options/command_tree.h"
#include "saker/cli/usage/sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace saker::cli {
namespace {

constexpr std::size_t kNameColumn = 30;

std::string row_text(const HelpRow& row) {
  std::string text = "  " + row.name;
  if (row.text.empty()) {
    return text + "\n";
  }
  const std::size_t used = row.name.size() + 2;
  bool is_first = used < kNameColumn;
  if (!is_first) {
    text += "\n";
  }
  for (const std::string& line : wrap(row.text, kHelpWidth - kNameColumn)) {
    text += std::string(is_first ? kNameColumn - used : kNameColumn, ' ') + line + "\n";
    is_first = false;
  }
  return text;
}

}  // namespace

std::string usage_of(const CLI::App& command) {
  std::string text = full_name(command);
  if (!commands_of(command).empty()) {
    return text + " COMMAND [OPTIONS]";
  }
  for (const CLI::Option* option : options_of(command)) {
    if (option->get_positional() && !option->get_group().empty()) {
      const std::string name = argument_name(*option);
      const bool is_marked = name.starts_with('[') || option->get_required();
      text += is_marked ? " " + name : " [" + name + "]";
    }
  }
  return text + " [OPTIONS]";
}

std::string help_of(const CLI::App& command) {
  std::string text = fmt::format("Usage: {}\n", usage_of(command));
  for (const std::string& line : wrap(command.get_description(), kHelpWidth)) {
    text += "\n" + line;
  }
  text += "\n";
  if (const auto& aliases = command.get_aliases(); !aliases.empty()) {
    text += fmt::format("Also called {}.\n", fmt::join(aliases, ", "));
  }
  for (const HelpSection& section : sections_of(command)) {
    text += fmt::format("\n{}:\n", section.title);
    for (const HelpRow& row : section.rows) {
      text += row_text(row);
    }
  }
  if (const std::string_view examples = examples_of(full_name(command)); !examples.empty()) {
    text += fmt::format("\nExamples:\n{}", examples);
  }
  return text;
}

}  // namespace saker::cli
