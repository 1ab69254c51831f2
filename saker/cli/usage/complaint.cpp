// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/complaint.h"

#include "saker/base/nearest.h"
#include "saker/base/utf8.h"
#include "saker/cli/options/command_tree.h"
#include "saker/cli/usage/help.h"
#include "saker/cli/usage/synonyms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {
namespace {

constexpr std::size_t kQuoted = 60;

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) {
    names.push_back(command->get_name());
  }
  if (app.get_parent() == nullptr) {
    names.insert(names.end(), {"help", "version"});
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(command)) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

std::string unknown_command(const TypedLine& line) {
  const std::string& typed = line.unknown_command;
  const CommandAdvice advice = advice_on_command(typed);
  const auto names = command_names(*line.command);
  const auto near = advice.nearest.empty() && advice.text.empty()
                        ? nearest(typed, names)
                        : std::optional<std::string>(advice.nearest);
  std::string text = fmt::format("{} is no command", quote(typed, kQuoted));
  if (!advice.text.empty()) {
    text += fmt::format(": {}", advice.text);
  }
  if (near && !near->empty()) {
    text += fmt::format("; the nearest is {}", *near);
  }
  return text + fmt::format(" ({} --help lists all)", full_name(*line.command));
}

std::string unknown_option(const TypedLine& line) {
  const std::string& typed = line.unknown_option;
  std::string text =
      fmt::format("{} has no option {}", full_name(*line.command), quote(typed, kQuoted));
  if (const std::string_view advice = advice_on_option(typed); !advice.empty()) {
    text += fmt::format(": {}", advice);
  } else if (const auto near = nearest(typed, option_names(*line.command))) {
    text += fmt::format("; the nearest is {}", *near);
  }
  return text + fmt::format(" ({} --help lists all)", full_name(*line.command));
}

std::string too_many(const TypedLine& line) {
  const auto left = line.command->remaining(true);
  const std::string first = left.empty() ? std::string() : left.front();
  return fmt::format(
      "{} is one argument too many, expected {}", quote(first, kQuoted), usage_of(*line.command)
  );
}

// CLI11's "A: B" as A and B; A is empty if there is no name.
struct Named {
  std::string name;
  std::string text;
};

Named split_name(const std::string& what) {
  const std::size_t colon = what.find(": ");
  return colon == std::string::npos ? Named{"", what}
                                    : Named{what.substr(0, colon), what.substr(colon + 2)};
}

// The name of this option that was typed: an option may have several.
std::string typed_name(const TypedLine& line, const std::string& name) {
  const CLI::Option* option = line.command->get_option_no_throw(name);
  for (const std::string& word : line.arguments) {
    const std::string typed = word.substr(0, word.find('='));
    if (option != nullptr && typed.starts_with("--") && option->check_name(typed)) {
      return typed;
    }
  }
  return name;
}

// Names an option as it was typed, and the command for arguments without a name.
std::string of_option(const TypedLine& line, const std::string& name, std::string_view text) {
  return name.starts_with('-') ? fmt::format("{}: {}", typed_name(line, name), text)
                               : fmt::format("{}: {}", full_name(*line.command), text);
}

std::string not_a_value(const TypedLine& line, const std::string& what) {
  constexpr std::string_view kPrefix = "Could not convert: ";
  const std::size_t equals = what.find(" = ");
  if (!what.starts_with(kPrefix) || equals == std::string::npos) {
    return what;
  }
  const std::string name = what.substr(kPrefix.size(), equals - kPrefix.size());
  const CLI::Option* option = line.command->get_option_no_throw(name);
  const std::string type = option == nullptr ? std::string() : option->get_type_name();
  std::string_view expected = "another form";
  if (type == "INT" || type == "N") {
    expected = "an integer";
  } else if (type == "NUM" || type == "FLOAT") {
    expected = "a number";
  }
  return of_option(
      line,
      name,
      fmt::format("got {}, expected {}", quote(what.substr(equals + 3), kQuoted), expected)
  );
}

std::string mismatch(const TypedLine& line, const std::string& what) {
  const Named named = split_name(what);
  if (named.text.ends_with(" missing")) {
    const CLI::Option* option = line.command->get_option_no_throw(named.name);
    const std::string type = option == nullptr ? "a value" : option->get_type_name();
    return of_option(line, named.name, fmt::format("expected {} behind it", type));
  }
  if (named.text.starts_with("At Most")) {
    return of_option(line, named.name, "given more than once");
  }
  return what;
}

std::string joined(const std::string& what, std::string_view verb, std::string_view instead) {
  const std::size_t at = what.find(verb);
  return at == std::string::npos
             ? what
             : what.substr(0, at) + std::string(instead) + what.substr(at + verb.size());
}

std::string missing(const TypedLine& line, const std::string& what) {
  constexpr std::string_view kTail = " is required";
  const std::string name =
      what.ends_with(kTail) ? what.substr(0, what.size() - kTail.size()) : what;
  if (name == "A subcommand") {
    return fmt::format(
        "{} needs a command: {}",
        full_name(*line.command),
        fmt::join(command_names(*line.command), ", ")
    );
  }
  return fmt::format(
      "{} needs {} ({} --help)", full_name(*line.command), name, full_name(*line.command)
  );
}

}  // namespace

std::string complaint(const TypedLine& line, const CLI::ParseError& error) {
  const std::string what = error.what();
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (!line.unknown_command.empty()) {
    return unknown_command(line);
  }
  if (!line.unknown_option.empty()) {
    return unknown_option(line);
  }
  if (kind == CLI::ExitCodes::ExtrasError) {
    return too_many(line);
  }
  if (kind == CLI::ExitCodes::ConversionError) {
    return not_a_value(line, what);
  }
  if (kind == CLI::ExitCodes::ArgumentMismatch) {
    return mismatch(line, what);
  }
  if (kind == CLI::ExitCodes::ExcludesError) {
    return joined(what, " excludes ", " does not go together with ");
  }
  if (kind == CLI::ExitCodes::RequiresError) {
    return joined(what, " requires ", " goes only with ");
  }
  if (kind == CLI::ExitCodes::RequiredError) {
    return missing(line, what);
  }
  const Named named = split_name(what);
  return named.name.empty() ? what : of_option(line, named.name, named.text);
}

}  // namespace saker::cli
