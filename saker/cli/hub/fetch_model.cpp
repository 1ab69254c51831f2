// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/hub/fetch_model.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/cli/hub/asking.h"
#include "saker/cli/hub/consent.h"
#include "saker/cli/hub/inspect_remote.h"
#include "saker/cli/hub/pull_bars.h"
#include "saker/cli/hub/size_text.h"
#include "saker/cli/io/interrupt.h"
#include "saker/cli/io/output.h"
#include "saker/hub/environment.h"
#include "saker/hub/missing_model.h"
#include "saker/hub/model_name.h"
#include "saker/hub/pull.h"
#include "saker/load/files/named_models.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {
namespace {

constexpr const char* kDraftOption = "--draft";
// Names of arguments that may hold a model's name.
constexpr std::array kModelOptions{"MODEL", "PATH", "paths", kDraftOption};
// Takes DIR or NAME=DIR, any number of them.
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

// True for commands that manage the cache itself.
bool is_about_the_cache(const CLI::App& command) {
  const std::string& name = command.get_name();
  return name == "pull" || name == "list" || name == "rm" || name == "verify";
}

// Names without an owner are mostly missing folders.
bool can_be_asked_for(const hub::ModelName& name) {
  return name.repo.find('/') != std::string::npos && can_ask() && !hub::is_offline();
}

void fetch_if_missing(const std::string& text, bool pulls, Consent question) {
  const auto name = hub::missing_model(text);
  if (!name || load::find_named_model(text)) {
    return;
  }
  if (pulls) {
    fetch_model(*name, {});
    return;
  }
  if (can_be_asked_for(*name)) {
    ask_for_missing(*name, [&] { return fetch_model(*name, {}, question); });
    return;
  }
  throw Error(
      ErrorCode::kNotFound,
      fmt::format(
          "{} is neither a folder nor in the hub cache {}; 'saker pull {}' fetches it, or --pull "
          "with this command",
          quote(text, text.size()),
          quote_path(hub::cache_dir()),
          hub::to_string(*name)
      )
  );
}

// The last path is the output: the first of two is the model, and a single one is no model.
bool names_a_model(std::string_view option, const std::vector<std::string>& values) {
  if (option == "paths") {
    return values.size() == 2;
  }
  return !values.empty() && !(option == kDraftOption && values.front() == "none");
}

void fetch_for(const CLI::App& command) {
  const CLI::Option* flag = command.get_option_no_throw(kPullFlag);
  const bool pulls = flag != nullptr && flag->count() > 0;
  if (flag == nullptr || command.get_name() == "launch") {
    return;
  }
  // `inspect` asks the hub itself.
  const bool looks = !pulls && command.get_name() == "inspect";
  for (const char* option : kModelOptions) {
    const CLI::Option* given = command.get_option_no_throw(option);
    if (given != nullptr && names_a_model(option, given->results()) &&
        !(looks && given->results().front().find('/') != std::string::npos)) {
      const bool runs_alone = std::string_view(option) != kDraftOption;
      std::vector<std::string> models = given->results();
      models.resize(std::string_view(option) == "MODEL" ? models.size() : 1);
      for (const std::string& model : models) {
        fetch_if_missing(model, pulls, runs_alone ? Consent::kAskOfModel : Consent::kAsk);
      }
    }
  }
  if (const CLI::Option* adapters = command.get_option_no_throw(kAdapterOption)) {
    for (const std::string& text : adapters->results()) {
      const std::size_t equals = text.find('=');
      fetch_if_missing(
          equals == std::string::npos ? text : text.substr(equals + 1), pulls, Consent::kAsk
      );
    }
  }
}

// "335.2 MB in 8 files", or the GGUF model.
std::string describe(const hub::ModelName& name, const hub::PullPlan& plan) {
  std::string text = size_text(plan.bytes);
  if (plan.missing < plan.bytes) {
    text += fmt::format(", {} of them here already", size_text(plan.bytes - plan.missing));
  }
  if (plan.gguf.empty()) {
    return fmt::format("{} in {} file{}", text, plan.files, plan.files == 1 ? "" : "s");
  }
  text = fmt::format("{}, {}", plan.gguf, text);
  return plan.ggufs > 1 && name.file.empty()
             ? fmt::format(
                   "{} (one of {} GGUF models, {}:NAME takes another)", text, plan.ggufs, name.repo
               )
             : text;
}

void require_consent(
    const hub::ModelName& name,
    const hub::PullPlan& plan,
    Consent question,
    const std::stop_token& stop
) {
  const std::string label = hub::to_string(name);
  // Of the same commit, whatever is pushed meanwhile.
  const std::string says =
      question == Consent::kAskOfModel ? outlook({name.repo, plan.commit, name.file}, stop) : "";
  const bool agreed = ask_yes(
      fmt::format(
          "{} is not on this machine: {}. {}Fetch it? [Y/n] ",
          label,
          describe(name, plan),
          says.empty() ? "" : says + " "
      ),
      stop
  );
  require(agreed, ErrorCode::kCancelled, "{} was not fetched", label);
}

}  // namespace

hub::PullReport fetch_model(const hub::ModelName& name, hub::PullOptions options, Consent consent) {
  std::stop_source stop;
  InterruptWatcher watcher;
  watcher.set_handler([&stop] { stop.request_stop(); });
  const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
  const std::string label = hub::to_string(name);
  std::optional<PullBars> bars;
  options.stop = stop.get_token();
  options.planned = [&](const hub::PullPlan& plan) {
    if (consent != Consent::kGiven) {
      require_consent(name, plan, consent, options.stop);
    } else if (on_terminal) {
      print_error(fmt::format("{}: {}\n", label, describe(name, plan)));
    }
    bars.emplace(label);
  };
  options.progress = [&](std::span<const hub::FileProgress> files) { bars->show(files); };
  options.retrying = say_asking(name);
  try {
    return hub::pull(name, options);
  } catch (const Error& error) {
    require(
        error.code() != ErrorCode::kCancelled || !bars,
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
          "Fetch models that are not in the cache from the hub, without asking"
      );
    }
  }
}

void fetch_missing_model(const std::string& model, bool pulls) {
  fetch_if_missing(model, pulls, Consent::kAskOfModel);
}

void fetch_missing_models(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    fetch_for(*command);
    fetch_missing_models(*command);
  }
}

}  // namespace saker::cli
