// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/app.h"

#include "saker/base/characters/printable.h"
#include "saker/base/error.h"
#include "saker/base/files/file_failure.h"
#include "saker/base/memory.h"
#include "saker/base/utf8.h"
#include "saker/cli/command.h"
#include "saker/cli/hub/fetch_model.h"
#include "saker/cli/lost_files.h"
#include "saker/cli/no_memory.h"
#include "saker/cli/output.h"
#include "saker/engine/logging.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
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
    // No memory to put the line together: its pieces need none.
    for (const std::string_view piece : {std::string_view("error: "), message, {"\n"}}) {
      print_error(piece);
    }
  }
  return kFailure;
}

// Help and version when the command line asked for them, else what is wrong with it.
int explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining();
  if (app.get_subcommands().empty() && !unknown.empty() && !unknown.front().starts_with('-')) {
    print_error(fmt::format("{} is no command; `saker --help` lists them\n", quote(unknown.front()))
    );
    return kWrongUsage;
  }
  std::ostringstream asked;
  std::ostringstream wrong;
  const bool success = app.exit(error, asked, wrong) == static_cast<int>(CLI::ExitCodes::Success);
  print_error(wrong.str());
  print(asked.str());
  return success ? 0 : kWrongUsage;
}

// Names of files must not be empty: most such are a script's variable that was never set.
void refuse_empty_names(CLI::App& app) {
  constexpr std::array<std::string_view, 2> kTypes{"FILE", "DIR"};
  constexpr std::array<std::string_view, 2> kPositionals{"FILE", "OUTPUT"};
  const auto not_empty = [](const std::string& name) {
    return name.empty() ? "the name is empty" : "";
  };
  for (CLI::App* command : app.get_subcommands({})) {
    refuse_empty_names(*command);
    for (CLI::Option* option : command->get_options({})) {
      if (std::ranges::find(kTypes, option->get_type_name()) != kTypes.end() ||
          std::ranges::find(kPositionals, option->get_single_name()) != kPositionals.end()) {
        option->check(CLI::Validator(not_empty, ""));
      }
    }
  }
}

// --log-level of all commands; takes effect while the command line is read.
void add_log_level(CLI::App& command) {
  command
      .add_option_function<std::string>(
          "--log-level",
          [](const std::string& level) { set_log_level(level); },
          "Messages on standard error: trace, debug, info, warn, error or off [SAKER_LOG, else "
          "warn]"
      )
      ->check(CLI::IsMember(std::vector<std::string>(kLogLevels.begin(), kLogLevels.end())))
      ->type_name("LEVEL");
  for (CLI::App* below : command.get_subcommands({})) {
    add_log_level(*below);
  }
}

// Whether the command that was given, or one below it, has its work on a GPU.
bool is_for_gpu(const CLI::App& command) {
  const CLI::Option* device = command.get_option_no_throw("--device");
  return (device != nullptr && device->as<std::string>() == "gpu") ||
         std::ranges::any_of(command.get_subcommands(), [](const CLI::App* below) {
           return is_for_gpu(*below);
         });
}

// Before there are threads. A GPU is fed from several that allocate and free small arrays all the
// time; with one heap for all they wait for each other.
void keep_memory(const CLI::App& app) {
  constexpr int kKeptBytes = 512 << 20;  // The logits of a pass of 512 rows are 300 MB.
  if (!is_for_gpu(app)) {
    keep_freed_memory(kKeptBytes);
  }
}

int run_command(int argc, char** argv) {
  log_to_stderr();
  end_with_reader();
  fail_large_writes();
  explain_lost_files();
  explain_shortage_anywhere();
  CLI::App app{"Saker runs large language models: chat, generate, score, measure."};
  app.name("saker");
  app.set_version_flag("--version", "saker " SAKER_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Try `saker run` for a chat with the bundled demo model, `saker COMMAND --help` for more."
  );
  Action action;
  add_run(app, action);
  add_generate(app, action);
  add_score(app, action);
  add_bench(app, action);
  add_tokenize(app, action);
  add_detokenize(app, action);
  add_template(app, action);
  add_inspect(app, action);
  add_cache(app, action);
  add_convert(app, action);
  add_create(app, action);
  add_perplexity(app, action);
  add_pull(app, action);
  add_list(app, action);
  add_rm(app, action);
  add_verify(app, action);
  add_pull_flags(app);
  add_log_level(app);
  refuse_empty_names(app);
  try {
    app.parse(argc, argv);
    keep_memory(app);
    fetch_missing_models(app);
    return action();
  } catch (const CLI::ParseError& error) {
    return explain(app, error);
  }
}

// What is wrong, of errors that are not ours. Needs no memory where that is what lacks.
int fail_by(const std::exception& error) {
  if (const auto what = shortage(error)) {
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
