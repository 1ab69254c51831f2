// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/man_page.h"

#include "saker/cli/options/command_tree.h"
#include "saker/cli/usage/environment.h"
#include "saker/cli/usage/help.h"
#include "saker/cli/usage/sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {
namespace {

constexpr std::size_t kLineWidth = 78;

// Escapes text, so that man takes no part of it as a request, and prints its signs as they are.
std::string escaped(std::string_view text) {
  std::string result;
  bool is_start = true;
  for (const char c : text) {
    if (is_start && (c == '.' || c == '\'')) {
      result += "\\&";
    }
    switch (c) {
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += "\\-";
        break;
      case '\'':
        result += "\\(aq";
        break;
      case '`':
        result += "\\(ga";
        break;
      case '^':
        result += "\\(ha";
        break;
      case '~':
        result += "\\(ti";
        break;
      default:
        result += c;
    }
    is_start = c == '\n';
  }
  return result;
}

std::string paragraph(std::string_view text) {
  std::string result;
  for (const std::string& line : wrap(text, kLineWidth)) {
    result += escaped(line) + "\n";
  }
  return result;
}

// "-n, --max-tokens INT" with names in bold and the value in italics.
std::string styled(std::string_view name) {
  std::string result;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find(' '), name.size());
    std::string_view word = name.substr(0, end);
    const bool has_comma = word.ends_with(',');
    word.remove_suffix(has_comma ? 1 : 0);
    const bool is_name =
        word.starts_with('-') ||
        (!word.empty() && std::islower(static_cast<unsigned char>(word.front())) != 0 &&
         word.find('|') == std::string_view::npos);
    result += fmt::format(
        "{}\\f{}{}\\fR{}",
        result.empty() ? "" : " ",
        is_name ? 'B' : 'I',
        escaped(word),
        has_comma ? "," : ""
    );
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return result;
}

std::string tagged(const std::string& tag, std::string_view text) {
  return fmt::format(".TP\n{}\n{}", tag, paragraph(text));
}

std::string sections_text(const CLI::App& command) {
  const bool has_commands = !commands_of(command).empty();
  std::string text = has_commands ? ".SH COMMANDS\n" : ".SH OPTIONS\n";
  bool is_command = has_commands;
  for (const HelpSection& section : sections_of(command)) {
    const bool holds_commands = find_command(command, section.rows.front().name) != nullptr;
    if (is_command && !holds_commands) {
      text += ".SH OPTIONS\n";
    }
    is_command = holds_commands;
    text += fmt::format(".SS {}\n", escaped(section.title));
    for (const HelpRow& row : section.rows) {
      text += tagged(styled(row.name), row.text);
    }
  }
  return text;
}

// Sections that belong to all commands, on the page of the program.
std::string program_text() {
  std::string text = ".SH EXIT STATUS\n";
  text += tagged("0", "Success.");
  text += tagged("1", "Failure; standard error has one line that begins with error:.");
  text += tagged("2", "Wrong usage.");
  text += ".SH ENVIRONMENT\n";
  text += tagged(
      "\\fBSAKER_\\fR\\fINAME\\fR",
      "The default of the option of this name, as in SAKER_MODEL and SAKER_MAX_TOKENS."
  );
  for (const EnvironmentVariable& variable : environment_variables()) {
    text += tagged(fmt::format("\\fB{}\\fR", variable.name), variable.effect);
  }
  text += ".SH FILES\n";
  text += tagged("\\fI\\(ti/.config/saker/config.toml\\fR", "Defaults of options.");
  text += tagged("\\fI\\(ti/.cache/huggingface/hub\\fR", "Models that were fetched.");
  text += tagged("\\fI\\(ti/.local/share/saker/models\\fR", "Models that saker create made.");
  text += tagged("\\fI\\(ti/.local/state/saker/history\\fR", "The history of chats.");
  return text;
}

std::string see_also(const CLI::App& command) {
  std::vector<std::string> pages;
  for (const CLI::App* other : {command.get_parent()}) {
    if (other != nullptr) {
      pages.push_back(man_page_name(*other));
    }
  }
  for (const CLI::App* below : commands_of(command)) {
    pages.push_back(man_page_name(*below));
  }
  std::string text;
  for (const std::string& page : pages) {
    const std::string_view end = page == pages.back() ? "" : ",";
    text += fmt::format(".BR {} (1){}\n", escaped(page), end);
  }
  return text.empty() ? text : ".SH SEE ALSO\n" + text;
}

void add_commands_below(std::vector<const CLI::App*>& found, const CLI::App& app) {
  found.push_back(&app);
  for (const CLI::App* below : commands_of(app)) {
    add_commands_below(found, *below);
  }
}

}  // namespace

std::string man_page_name(const CLI::App& command) {
  std::string name = full_name(command);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::vector<const CLI::App*> all_commands(const CLI::App& app) {
  std::vector<const CLI::App*> found;
  add_commands_below(found, app);
  return found;
}

std::string man_page(const CLI::App& command) {
  const bool is_program = command.get_parent() == nullptr;
  std::string title = man_page_name(command);
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  const std::string usage = usage_of(command).substr(full_name(command).size());
  std::string page = fmt::format(
      ".TH {} 1 {} \"saker {}\" \"Saker\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n{}\n"
      ".SH DESCRIPTION\n{}",
      escaped(title),
      SAKER_RELEASE_DATE,
      SAKER_VERSION,
      escaped(man_page_name(command)),
      is_program ? "runs large language models" : escaped(command.get_description()),
      escaped(full_name(command)),
      escaped(usage.substr(usage.find_first_not_of(' '))),
      paragraph(command.get_description() + (command.get_description().ends_with('.') ? "" : "."))
  );
  if (const auto& aliases = command.get_aliases(); !aliases.empty()) {
    page += paragraph(fmt::format("Also called {}.", fmt::join(aliases, ", ")));
  }
  page += sections_text(command);
  if (is_program) {
    page += program_text();
  }
  if (const std::string_view examples = examples_of(full_name(command)); !examples.empty()) {
    page += fmt::format(".SH EXAMPLES\n.nf\n{}.fi\n", escaped(examples));
  }
  return page + see_also(command);
}

}  // namespace saker::cli
