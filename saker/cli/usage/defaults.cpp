// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/defaults.h"

#include "saker/base/error.h"
#include "saker/base/nearest.h"
#include "saker/base/utf8.h"
#include "saker/cli/options/command_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

// Options of one prompt, one input or one output.
constexpr std::array<std::string_view, 24> kNoDefaults{
    "prompt",  "text", "file",   "tokens",   "prompt-tokens", "completion", "messages", "tools",
    "output",  "html", "logits", "trace",    "resume",        "preflight",  "json",     "help",
    "version", "yes",  "remove", "cache-in", "cache-out",     "null",       "query",    "shard"
};

// Commands that write or manage models have a default only for the log's level.
bool has_default(const CLI::App& command, std::string_view name) {
  return name == "log-level" || (command.get_option_no_throw("-m") != nullptr &&
                                 std::ranges::find(kNoDefaults, name) == kNoDefaults.end());
}

std::string variable_of(std::string_view option) {
  std::string name = "SAKER_";
  for (const char c : option) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

class DefaultTaker {
 public:
  DefaultTaker(TypedLine& line, const std::vector<ConfigEntry>& config, const std::string& source)
      : line_(line), config_(config), source_(source) {}

  std::vector<TakenDefault> take() {
    for (const CLI::Option* option : options_of(*line_.command)) {
      const bool is_model = option->check_name("-m");
      if (option->get_lnames().empty() || line_.has(option) || (is_model && !line_.texts.empty()) ||
          !is_possible(*option)) {
        continue;
      }
      take(*option);
    }
    return std::move(taken_);
  }

 private:
  bool is_possible(const CLI::Option& option) const {
    const auto is_typed = [&](const CLI::Option* other) { return line_.has(other); };
    return std::ranges::all_of(option.get_needs(), is_typed) &&
           std::ranges::none_of(option.get_excludes(), is_typed);
  }

  // Any name of the option counts, in the order of the sources.
  void take(const CLI::Option& option) {
    std::vector<std::string> names = option.get_lnames();
    std::erase_if(names, [&](const std::string& name) {
      return !has_default(*line_.command, name);
    });
    for (const std::string& name : names) {
      const std::string variable = variable_of(name);
      if (const char* value = std::getenv(variable.c_str()); value != nullptr && *value != '\0') {
        add(option, name, {value}, variable);
        return;
      }
    }
    // SAKER_LOG is the environment's setting for it.
    if (option.check_name("--log-level") && std::getenv("SAKER_LOG") != nullptr) {
      return;
    }
    if (const ConfigEntry* entry = find(names)) {
      add(option, entry->option, entry->values, source_);
    }
  }

  // The command's own entry takes precedence over one for all commands.
  const ConfigEntry* find(const std::vector<std::string>& names) const {
    const ConfigEntry* found = nullptr;
    for (const ConfigEntry& entry : config_) {
      if (std::ranges::find(names, entry.option) == names.end()) {
        continue;
      }
      if (!line_.path.empty() && entry.command == line_.path.front()) {
        return &entry;
      }
      if (entry.command.empty()) {
        found = &entry;
      }
    }
    return found;
  }

  void add(
      const CLI::Option& option,
      const std::string& name,
      const std::vector<std::string>& values,
      const std::string& source
  ) {
    const bool is_flag = !takes_value(option);
    std::vector<std::string> words;
    for (const std::string& value : values) {
      if (is_flag && (value == "false" || value == "0" || value == "off")) {
        continue;
      }
      const bool is_switch = option.get_type_name().starts_with("on|off");
      std::string text = value;
      if (is_switch && (value == "true" || value == "false")) {
        text = value == "true" ? "on" : "off";
      }
      std::string word = "--" + name;
      if (!is_flag) {
        word += "=" + text;
      }
      words.push_back(std::move(word));
    }
    // Goes before the texts, and before a "--" that ends the options.
    line_.arguments.insert(line_.arguments.begin(), words.begin(), words.end());
    line_.options.push_back(&option);
    taken_.push_back({&option, source});
  }

  TypedLine& line_;
  const std::vector<ConfigEntry>& config_;
  const std::string& source_;
  std::vector<TakenDefault> taken_;
};

std::vector<std::string> long_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(command)) {
    for (const std::string& name : option->get_lnames()) {
      if (has_default(command, name)) {
        names.push_back(name);
      }
    }
  }
  return names;
}

void check_entry(const CLI::App& app, const ConfigEntry& entry, const std::string& source) {
  std::vector<std::string> names;
  std::vector<std::string> commands;
  for (const CLI::App* command : commands_of(app)) {
    commands.push_back(command->get_name());
    if (entry.command.empty() || entry.command == command->get_name()) {
      const auto more = long_names(*command);
      names.insert(names.end(), more.begin(), more.end());
    }
  }
  const bool is_command =
      entry.command.empty() || std::ranges::find(commands, entry.command) != commands.end();
  if (is_command && std::ranges::find(names, entry.option) != names.end()) {
    return;
  }
  const auto near = is_command ? nearest(entry.option, names) : nearest(entry.command, commands);
  const std::string& wrong = is_command ? entry.option : entry.command;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format(
          "{}: {} is no {}{}{}",
          source,
          quote(wrong),
          is_command ? "option that has a default" : "command",
          is_command && !entry.command.empty() ? " in " + entry.command : "",
          near ? "; the nearest is " + *near : ""
      )
  );
}

}  // namespace

std::vector<TakenDefault> add_defaults(
    const CLI::App& app,
    TypedLine& line,
    const std::vector<ConfigEntry>& config,
    const std::string& source
) {
  for (const ConfigEntry& entry : config) {
    check_entry(app, entry, source);
  }
  if (line.command == nullptr || line.command == &app || !line.unknown_option.empty()) {
    return {};
  }
  return DefaultTaker(line, config, source).take();
}

}  // namespace saker::cli
