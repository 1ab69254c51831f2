// SPDX-License-Identifier: Apache-2.0
// `saker rm`: removes models, or revisions of them, from the hub cache, and named models.
#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/cli/hub/size_text.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/command.h"
#include "saker/hub/cached_models.h"
#include "saker/hub/environment.h"
#include "saker/hub/model_name.h"
#include "saker/load/files/named_models.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace saker::cli {
namespace {

struct RmArgs {
  std::vector<std::string> models;
  bool yes = false;
  bool json = false;
};

// True if removing one also removes something that the other names.
bool overlap(const hub::ModelName& a, const hub::ModelName& b) {
  const auto meet = [](const std::string& one, const std::string& other) {
    return one == other || one.empty() || other.empty();
  };
  return a.repo == b.repo && meet(a.revision, b.revision) && meet(a.file, b.file);
}

// Describes a removal, for the question or the report.
std::string describe(const hub::Removal& removal) {
  const std::string size = size_text(removal.bytes);
  if (!removal.files.empty()) {
    return fmt::format("{} of {} ({})", fmt::join(removal.files, ", "), removal.model.repo, size);
  }
  return removal.whole ? fmt::format("{} ({})", removal.model.repo, size)
                       : fmt::format(
                             "revision {} of {} ({} that no other revision uses)",
                             removal.revisions.front().commit,
                             removal.model.repo,
                             size
                         );
}

bool confirmed(const std::string& what) {
  require(
      ::isatty(STDIN_FILENO) == 1,
      ErrorCode::kInvalidArgument,
      "nobody can be asked whether to remove {}: give --yes",
      what
  );
  print_error(fmt::format("Remove {}? [y/N] ", what));
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

// The removed models.
struct Removed {
  Json models = Json::array();
  std::uintmax_t bytes = 0;
};

// Removes models that `create` made.
Removed remove_named(const std::vector<std::string>& names, const RmArgs& args) {
  Removed removed;
  for (const std::string& name : names) {
    const auto path = load::find_named_model(name);
    const std::uintmax_t bytes = path ? load::named_model_bytes(*path) : 0;
    const std::string what = fmt::format("{} ({})", name, size_text(bytes));
    if (!args.yes && !confirmed(what)) {
      continue;
    }
    load::remove_named_model(name);
    removed.bytes += bytes;
    removed.models.push_back({{"name", name}, {"bytes", bytes}});
    if (!args.json) {
      print(fmt::format("removed {}\n", what));
    }
  }
  return removed;
}

Removed remove_cached(const std::vector<hub::ModelName>& names, const RmArgs& args) {
  Removed removed;
  const auto cache = hub::cache_dir();
  for (const hub::ModelName& name : names) {
    const hub::Removal removal = hub::plan_removal(cache, name);
    if (!args.yes && !confirmed(describe(removal))) {
      continue;
    }
    hub::remove(cache, removal);
    removed.bytes += removal.bytes;
    Json commits = Json::array();
    for (const hub::CachedRevision& revision : removal.revisions) {
      commits.push_back(revision.commit);
    }
    removed.models.push_back(
        {{"repo", name.repo}, {"commits", std::move(commits)}, {"bytes", removal.bytes}}
    );
    if (!args.json) {
      print(fmt::format("removed {}\n", describe(removal)));
    }
  }
  return removed;
}

int run_rm(const RmArgs& args) {
  const auto cache = hub::cache_dir();
  std::vector<std::string> named;
  // Looks up all names before anything is removed.
  std::vector<hub::ModelName> names;
  for (const std::string& text : args.models) {
    if (load::find_named_model(text)) {
      const std::string name = load::parse_stored_name(text).value();
      require(
          std::ranges::find(named, name) == named.end(),
          ErrorCode::kInvalidArgument,
          "{} is there twice",
          quote(name)
      );
      named.push_back(name);
      continue;
    }
    const hub::ModelName name = hub::require_model_name(text);
    require(
        std::ranges::none_of(names, [&](const auto& other) { return overlap(name, other); }),
        ErrorCode::kInvalidArgument,
        "{} is there twice",
        quote(name.repo)
    );
    hub::plan_removal(cache, name);
    names.push_back(name);
  }
  Removed removed = remove_named(named, args);
  const Removed cached = remove_cached(names, args);
  removed.models.insert(removed.models.end(), cached.models.begin(), cached.models.end());
  removed.bytes += cached.bytes;
  if (args.json) {
    print(dump_line({{"removed", std::move(removed.models)}, {"bytes", removed.bytes}}));
  }
  return 0;
}

}  // namespace

void add_rm(CLI::App& app, Action& action) {
  auto args = std::make_shared<RmArgs>();
  CLI::App& command =
      *app.add_subcommand("rm", "Remove fetched models, or models made with create");
  command
      .add_option(
          "MODEL",
          args->models,
          "Repo ids, with @REVISION only that revision, with :FILE only a GGUF model; or names"
      )
      ->required()
      ->type_name("REPO[:FILE][@REVISION]|NAME");
  command.add_flag("-y,--yes", args->yes, "Don't ask");
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] { action = [args] { return run_rm(*args); }; });
}

}  // namespace saker::cli
