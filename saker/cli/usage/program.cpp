// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/program.h"

#include "saker/cli/hub/fetch_model.h"
#include "saker/cli/launch/launch.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/serve/serve.h"
#include "saker/cli/usage/help.h"
#include "saker/cli/usage/man_command.h"
#include "saker/engine/logging.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {
namespace {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(
      const CLI::App* app, std::string /*name*/, CLI::AppFormatMode /*mode*/
  ) const override {
    return help_of(*app);
  }
};

// Refuses empty file names, which are mostly script variables that were never set.
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

// Adds --log-level, which takes effect while the command line is read.
void add_log_level(CLI::App& command) {
  command
      .add_option_function<std::string>(
          "--log-level",
          [](const std::string& level) { set_log_level(level); },
          "How much to log on standard error [SAKER_LOG, else warn]"
      )
      ->check(one_of({kLogLevels.begin(), kLogLevels.end()}))
      ->type_name("trace|debug|info|warn|error|off");
  for (CLI::App* below : command.get_subcommands({})) {
    if (!below->get_name().empty()) {
      add_log_level(*below);
    }
  }
}

// The functions below add the groups of `saker --help`, in their order.
void add_talk(CLI::App& app, Action& action) {
  add_run(app, action);
  add_generate(app, action);
  add_embed(app, action);
  add_rerank(app, action);
  add_serve(app, action);
  add_launch(app, action);
  app.get_subcommand("run")->alias("chat");
}

void add_models(CLI::App& app, Action& action) {
  add_pull(app, action);
  add_list(app, action);
  add_rm(app, action);
  add_verify(app, action);
  add_inspect(app, action);
  add_convert(app, action);
  add_create(app, action);
  app.get_subcommand("list")->alias("ls");
  app.get_subcommand("inspect")->alias("show");
}

void add_measures(CLI::App& app, Action& action) {
  add_score(app, action);
  add_perplexity(app, action);
  add_imatrix(app, action);
  add_merge(app, action);
  add_bench(app, action);
}

void add_parts(CLI::App& app, Action& action) {
  add_tokenize(app, action);
  add_detokenize(app, action);
  add_template(app, action);
  add_cache(app, action);
  add_doctor(app, action);
  add_completion(app, action);
  add_man(app, action);
}

void add_group(
    CLI::App& app, Action& action, const std::string& title, void (*add)(CLI::App&, Action&)
) {
  const auto before = app.get_subcommands({});
  add(app, action);
  for (CLI::App* command : app.get_subcommands({})) {
    if (std::ranges::find(before, command) == before.end()) {
      command->group(title);
    }
  }
}

}  // namespace

void add_commands(CLI::App& app, Action& action) {
  app.name("saker");
  app.description("Saker runs large language models: chat, generate, score, measure.");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Print this and exit");
  app.set_version_flag("--version", "saker " SAKER_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  add_group(app, action, "Chat and text", add_talk);
  add_group(app, action, "Models", add_models);
  add_group(app, action, "Measuring", add_measures);
  add_group(app, action, "Tokens, templates and more", add_parts);
  add_pull_flags(app);
  add_log_level(app);
  refuse_empty_names(app);
}

}  // namespace saker::cli
