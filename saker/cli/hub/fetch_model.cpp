// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/hub/fetch_model.h"

#include "saker/base/error.h"
#include "saker/cli/hub/pull_bars.h"
#include "saker/cli/interrupt.h"
#include "saker/hub/missing_model.h"
#include "saker/hub/model_name.h"
#include "saker/hub/pull.h"
#include "saker/load/named_models.h"

#include <CLI/CLI.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {
namespace {

constexpr const char* kDraftOption = "--draft";
// How commands call what may be the name of a model.
constexpr std::array kModelOptions{"MODEL", "PATH", "paths", kDraftOption};
// DIR or NAME=DIR, any number of them.
constexpr const char* kAdapterOption = "--adapter";
constexpr const char* kPullFlag = "--pull";

bool takes_a_model(const CLI::App& command) {
  for (const char* option : kModelOptions) {
    if (command.get_option_no_throw(option) != nullptr) {
      return true;
    }
  }
  return false;
}

// Commands that manage the cache itself.
bool is_about_the_cache(const CLI::App& command) {
  const std::string& name = command.get_name();
  return name == "pull" || name == "list" || name == "rm" || name == "verify";
}

void fetch_if_missing(const std::string& text) {
  const auto name = hub::missing_model(text);
  if (name && !load::find_named_model(text)) {
    fetch_model(*name, {});
  }
}

// Of two paths the first is the model, what follows is written; one alone is written too.
bool names_a_model(std::string_view option, const std::vector<std::string>& values) {
  if (option == "paths") {
    return values.size() == 2;
  }
  return !values.empty() && !(option == kDraftOption && values.front() == "none");
}

void fetch_for(const CLI::App& command) {
  const CLI::Option* flag = command.get_option_no_throw(kPullFlag);
  if (flag == nullptr || flag->count() == 0) {
    return;
  }
  for (const char* option : kModelOptions) {
    const CLI::Option* given = command.get_option_no_throw(option);
    if (given != nullptr && names_a_model(option, given->results())) {
      fetch_if_missing(given->results().front());
    }
  }
  if (const CLI::Option* adapters = command.get_option_no_throw(kAdapterOption)) {
    for (const std::string& text : adapters->results()) {
      const std::size_t equals = text.find('=');
      fetch_if_missing(equals == std::string::npos ? text : text.substr(equals + 1));
    }
  }
}

}  // namespace

hub::PullReport fetch_model(const hub::ModelName& name, hub::PullOptions options) {
  std::stop_source stop;
  InterruptWatcher watcher;
  watcher.set_handler([&stop] { stop.request_stop(); });
  PullBars bars(hub::to_string(name));
  options.stop = stop.get_token();
  options.progress = [&bars](std::span<const hub::FileProgress> files) { bars.show(files); };
  try {
    return hub::pull(name, options);
  } catch (const Error& error) {
    require(
        error.code() != ErrorCode::kCancelled,
        ErrorCode::kCancelled,
        "interrupted; the same command goes on with what has come"
    );
    throw;
  }
}

void add_pull_flags(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    add_pull_flags(*command);
    if (takes_a_model(*command) && !is_about_the_cache(*command)) {
      command->add_flag(kPullFlag)->description(
          "Fetch models from the hub that are not in the cache"
      );
    }
  }
}

void fetch_missing_models(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    fetch_for(*command);
    fetch_missing_models(*command);
  }
}

}  // namespace saker::cli
