// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/sections.h"

#include "saker/cli/options/command_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

constexpr std::string_view kArguments = "Arguments";
// Groups in the order of help; others come before the last one.
constexpr std::array<std::string_view, 12> kGroups{
    kArguments,
    "Prompt",
    "Input",
    "Answer",
    "Sampling",
    "Options",
    "Repetition",
    "More sampling",
    "Adapter",
    "Views",
    "Drafts",
    "Cache"
};
constexpr std::array<std::string_view, 3> kLastGroups{"Engine", "Output", "General"};

std::string option_name(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) {
    names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (takes_value(option) && !option.get_type_name().empty()) {
    text += " " + option.get_type_name();
  }
  return text;
}

std::string group_of(const CLI::Option& option) {
  const std::string& group = option.get_group();
  if (option.get_positional() && (group == "Options" || option.nonpositional())) {
    return group == "Options" ? std::string(kArguments) : group;
  }
  if (option.check_name("--json") || option.check_name("--output")) {
    return "Output";
  }
  return option.check_name("--help") || option.check_name("--log-level") ||
                 option.check_name("--pull") || option.check_name("--version")
             ? "General"
             : group;
}

std::size_t rank(std::string_view group) {
  const auto* const first = std::ranges::find(kGroups, group);
  if (first != kGroups.end()) {
    return static_cast<std::size_t>(first - kGroups.begin());
  }
  const auto* const last = std::ranges::find(kLastGroups, group);
  return kGroups.size() +
         (last == kLastGroups.end() ? 0 : 1 + static_cast<std::size_t>(last - kLastGroups.begin()));
}

void add_row(std::vector<HelpSection>& sections, const std::string& title, HelpRow row) {
  auto found = std::ranges::find(sections, title, &HelpSection::title);
  if (found == sections.end()) {
    const auto is_later = [&](const HelpSection& other) { return rank(other.title) > rank(title); };
    found = sections.insert(std::ranges::find_if(sections, is_later), HelpSection{title, {}});
  }
  found->rows.push_back(std::move(row));
}

}  // namespace

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) {
      lines.emplace_back();
    }
    lines.back().append(lines.back().empty() ? "" : " ").append(word);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string argument_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return option.check_name("paths") ? type : option.get_name(true);
}

std::vector<HelpSection> sections_of(const CLI::App& command) {
  std::vector<HelpSection> sections;
  for (const CLI::App* below : commands_of(command)) {
    add_row(sections, below->get_group(), {below->get_name(), below->get_description()});
  }
  std::vector<HelpSection> options;
  for (const CLI::Option* option : options_of(command)) {
    if (option->get_group().empty()) {
      continue;  // Hidden.
    }
    std::string name = option->nonpositional() ? option_name(*option) : argument_name(*option);
    if (option->get_positional() && option->nonpositional()) {
      name = fmt::format("{}, {}", argument_name(*option), name);
    }
    add_row(options, group_of(*option), {std::move(name), option->get_description()});
  }
  std::ranges::move(options, std::back_inserter(sections));
  return sections;
}

}  // namespace saker::cli
