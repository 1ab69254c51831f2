// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/app.h"

#include "saker/base/characters/printable.h"
#include "saker/base/error.h"
#include "saker/base/files/file_failure.h"
#include "saker/base/memory.h"
#include "saker/base/utf8.h"
#include "saker/cli/hub/consent.h"
#include "saker/cli/hub/fetch_model.h"
#include "saker/cli/io/lost_files.h"
#include "saker/cli/io/no_memory.h"
#include "saker/cli/io/output.h"
#include "saker/cli/options/command_tree.h"
#include "saker/cli/usage/complaint.h"
#include "saker/cli/usage/config_file.h"
#include "saker/cli/usage/defaults.h"
#include "saker/cli/usage/help.h"
#include "saker/cli/usage/program.h"
#include "saker/cli/usage/typed_line.h"
#include "saker/engine/logging.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

constexpr int kFailure = 1;
constexpr int kWrongUsage = 2;

int fail(std::string_view message) {
  std::fflush(stdout);
  try {
    print_error(fmt::format("error: {}\n", printable_line(message)));
  } catch (const std::bad_alloc&) {
    // There is no memory to join the line, but its pieces need none.
    for (const std::string_view piece : {std::string_view("error: "), message, {"\n"}}) {
      print_error(piece);
    }
  }
  return kFailure;
}

// The source of the invalid value, if it was not typed.
std::string source_of(const std::vector<TakenDefault>& defaults, const CLI::ParseError& error) {
  for (const TakenDefault& taken : defaults) {
    const std::string name = shown_name(*taken.option);
    if (std::string_view(error.what()).find(name) != std::string_view::npos) {
      return fmt::format(" ({})", taken.source);
    }
  }
  return {};
}

// Takes defaults from the environment and the user's file. Help and `doctor` need neither, and work
// if they are invalid.
std::vector<TakenDefault> take_defaults(const CLI::App& app, TypedLine& line) {
  if (line.command == &app || line.command->get_name() == "doctor" ||
      line.has(line.command->get_help_ptr())) {
    return {};
  }
  const std::filesystem::path config = config_path();
  return add_defaults(
      app,
      line,
      config.empty() ? std::vector<ConfigEntry>() : read_config(config),
      quote_path(config)
  );
}

// True for a chat on a terminal, which asks for a model if none is named.
bool offers_models(const CLI::App& command) {
  return command.get_name() == "run" && command.get_option("--prompt")->count() == 0 && can_ask();
}

// Tells about a forgotten MODEL: answers of the bundled one would surprise. `launch` refuses it, if it finds no server.
void tell_of_demo(const CLI::App& command) {
  if (command.get_name() == "launch" || offers_models(command)) {
    return;
  }
  const CLI::Option* model = command.get_option_no_throw("MODEL");
  const CLI::Option* file = command.get_option_no_throw("--models");
  const bool has_file = file != nullptr && file->count() > 0;
  if (model != nullptr && model->count() == 0 && !model->get_required() && !has_file) {
    spdlog::warn(
        "no MODEL is given, so that this is the bundled demo model, a toy of 3 million parameters; "
        "`saker help` shows how to get others"
    );
  }
}

// Prints help or version if the command line asked for them, else the error.
int explain(
    const CLI::App& app,
    const TypedLine& line,
    const std::vector<TakenDefault>& defaults,
    const CLI::ParseError& error
) {
  const bool is_help_of_nothing =
      error.get_name() == "CallForHelp" && !line.unknown_command.empty();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success) && !is_help_of_nothing) {
    std::ostringstream asked;
    app.exit(error, asked, asked);
    print(asked.str());
    return 0;
  }
  fail(complaint(line, error) + source_of(defaults, error));
  return kWrongUsage;
}

// True if the given command, or one below it, runs on a GPU.
bool is_for_gpu(const CLI::App& command) {
  const CLI::Option* device = command.get_option_no_throw("--device");
  return (device != nullptr && device->as<std::string>() == "gpu") ||
         std::ranges::any_of(command.get_subcommands(), [](const CLI::App* below) {
           return is_for_gpu(*below);
         });
}

// Call before threads start. Not for a GPU: several threads feed it and allocate and free small
// arrays all the time, and would wait for each other on one heap.
void keep_memory(const CLI::App& app) {
  constexpr int kKeptBytes = 512 << 20;  // The logits of a pass of 512 tokens are 300 MB.
  if (!is_for_gpu(app)) {
    keep_freed_memory(kKeptBytes);
  }
}

int run_command(int argc, char** argv) {
  log_to_stderr();
  end_with_reader();
  fail_large_writes();
  explain_lost_files();
  explain_out_of_memory_anywhere();
  CLI::App app;
  Action action;
  add_commands(app, action);
  std::vector<std::string> typed(argv + std::min(argc, 1), argv + argc);
  if (typed.empty() && !can_ask()) {
    print_error(help_of(app));
    return kWrongUsage;
  }
  if (typed.empty()) {
    typed.emplace_back("run");
  }
  TypedLine line = read_line(app, std::move(typed));
  const auto defaults = take_defaults(app, line);
  try {
    std::vector<std::string> words = line.words();
    std::ranges::reverse(words);  // As CLI11 takes them.
    app.parse(std::move(words));
    keep_memory(app);
    tell_of_demo(*line.command);
    fetch_missing_models(app);
    return action();
  } catch (const CLI::ParseError& error) {
    return explain(app, line, defaults, error);
  }
}

// Reports an exception that is not an Error. Needs no memory if memory ran out.
int fail_by(const std::exception& error) {
  if (const auto what = out_of_memory_reason(error)) {
    return fail(*what);
  }
  return fail(file_failure(error).value_or(fmt::format("internal: {}", error.what())));
}

}  // namespace

int run(int argc, char** argv) {
  try {
    return run_command(argc, argv);
  } catch (const Error& error) {
    return fail(error.what());
  } catch (const std::exception& error) {
    return fail_by(error);
  }
}

}  // namespace saker::cli
