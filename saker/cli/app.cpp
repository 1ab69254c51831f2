// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/app.h"

#include "saker/base/error.h"
#include "saker/base/memory.h"
#include "saker/cli/command.h"
#include "saker/cli/hub/fetch_model.h"
#include "saker/cli/output.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>
#include <sstream>
#include <string_view>

namespace saker::cli {
namespace {

constexpr int kFailure = 1;
constexpr int kWrongUsage = 2;

// Logs never mix with answers.
void log_to_stderr() {
  auto logger = spdlog::stderr_color_st("saker");
  logger->set_pattern("%^%l:%$ %v");
  logger->set_level(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

int fail(std::string_view message) {
  std::fflush(stdout);
  print_error(fmt::format("error: {}\n", message));
  return kFailure;
}

// Help and version when the command line asked for them, else what is wrong with it.
int explain(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream asked;
  std::ostringstream wrong;
  const bool success = app.exit(error, asked, wrong) == static_cast<int>(CLI::ExitCodes::Success);
  print_error(wrong.str());
  print(asked.str());
  return success ? 0 : kWrongUsage;
}

}  // namespace

int run(int argc, char** argv) {
  log_to_stderr();
  end_with_reader();
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
  add_perplexity(app, action);
  add_pull(app, action);
  add_list(app, action);
  add_rm(app, action);
  add_pull_flags(app);
  try {
    try {
      app.parse(argc, argv);
      fetch_missing_models(app);
      return action();
    } catch (const CLI::ParseError& error) {
      return explain(app, error);
    }
  } catch (const Error& error) {
    return fail(error.what());
  } catch (const std::exception& error) {
    const auto what = shortage(error);
    return fail(what ? std::string(*what) : fmt::format("internal: {}", error.what()));
  }
}

}  // namespace saker::cli
