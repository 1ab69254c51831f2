// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/options/command_tree.h"

#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* below) { return !below->get_name().empty(); });
}

const CLI::App* find_command(const CLI::App& app, std::string_view name) {
  for (const CLI::App* command : commands_of(app)) {
    if (command->check_name(std::string(name))) {
      return command;
    }
  }
  return nullptr;
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  std::vector<const CLI::Option*> options = command.get_options({});
  const auto is_group = [](const CLI::App* below) { return below->get_name().empty(); };
  for (const CLI::App* group : command.get_subcommands(is_group)) {
    const auto grouped = options_of(*group);
    options.insert(options.end(), grouped.begin(), grouped.end());
  }
  return options;
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::string shown_name(const CLI::Option& option) {
  return option.get_name();
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_min() > 0;
}

}  // namespace saker::cli
