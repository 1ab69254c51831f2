// SPDX-License-Identifier: Apache-2.0
// `saker man`: manual pages, and the table of commands and options that they are made from.
#include "saker/cli/usage/man_command.h"

#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/command_tree.h"
#include "saker/cli/usage/environment.h"
#include "saker/cli/usage/help.h"
#include "saker/cli/usage/man_page.h"
#include "saker/cli/usage/sections.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

struct ManArgs {
  std::vector<std::string> command;
  std::string directory;
  bool json = false;
};

Json command_json(const CLI::App& command) {
  Json sections = Json::array();
  for (const HelpSection& section : sections_of(command)) {
    Json rows = Json::array();
    for (const HelpRow& row : section.rows) {
      rows.push_back({{"name", row.name}, {"text", row.text}});
    }
    sections.push_back({{"title", section.title}, {"rows", std::move(rows)}});
  }
  return {
      {"name", full_name(command)},
      {"usage", usage_of(command)},
      {"text", command.get_description()},
      {"aliases", command.get_aliases()},
      {"page", man_page_name(command)},
      {"sections", std::move(sections)},
      {"examples", examples_of(full_name(command))},
  };
}

Json table_json(const CLI::App& app) {
  Json commands = Json::array();
  for (const CLI::App* command : all_commands(app)) {
    commands.push_back(command_json(*command));
  }
  Json variables = Json::array();
  for (const EnvironmentVariable& variable : environment_variables()) {
    variables.push_back({{"name", variable.name}, {"text", variable.effect}});
  }
  return {{"commands", std::move(commands)}, {"environment", std::move(variables)}};
}

void write_pages(const CLI::App& app, const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  require(
      !failed, ErrorCode::kNotFound, "{}: cannot be made: {}", quote_path(folder), failed.message()
  );
  for (const CLI::App* command : all_commands(app)) {
    AtomicFile file(folder / (man_page_name(*command) + ".1"));
    file.write(man_page(*command));
    file.commit();
  }
}

const CLI::App& named_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    const CLI::App* below = find_command(*command, word);
    require(
        below != nullptr,
        ErrorCode::kInvalidArgument,
        "{} is no command of {}",
        quote(word),
        full_name(*command)
    );
    command = below;
  }
  return *command;
}

int run_man(const CLI::App& app, const ManArgs& args) {
  if (args.json) {
    print(dump_line(table_json(app)));
  } else if (!args.directory.empty()) {
    write_pages(app, args.directory);
  } else {
    print(man_page(named_command(app, args.command)));
  }
  return 0;
}

}  // namespace

void add_man(CLI::App& app, Action& action) {
  auto args = std::make_shared<ManArgs>();
  CLI::App& command = *app.add_subcommand("man", "Print a manual page: saker man run | man -l -");
  command.add_option("COMMAND", args->command, "The command whose page it is [the program's]");
  command.add_option("--directory", args->directory, "Write all pages into this folder")
      ->type_name("DIR");
  command.add_flag("--json", args->json, "Print the table of commands and options as JSON");
  command.callback([=, &app, &action] { action = [=, &app] { return run_man(app, *args); }; });
}

}  // namespace saker::cli
