// SPDX-License-Identifier: Apache-2.0
// `saker rm`: takes models, or revisions of them, out of the hub cache.
#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/cli/command.h"
#include "saker/cli/hub/size_text.h"
#include "saker/cli/output.h"
#include "saker/cli/result_json.h"
#include "saker/hub/cached_models.h"
#include "saker/hub/environment.h"
#include "saker/hub/model_name.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
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

hub::ModelName parse_name(const std::string& text) {
  const auto name = hub::parse_model_name(text);
  require(
      name.has_value(),
      ErrorCode::kInvalidArgument,
      "{} is no name of a model, expected ORG/NAME or ORG/NAME@REVISION",
      quote(text)
  );
  return *name;
}

// Whether one of them takes what the other one names.
bool overlap(const hub::ModelName& a, const hub::ModelName& b) {
  return a.repo == b.repo && (a.revision == b.revision || a.revision.empty() || b.revision.empty());
}

// What is asked about, or told afterwards.
std::string describe(const hub::Removal& removal) {
  const std::string size = size_text(removal.bytes);
  return removal.whole ? fmt::format("{} ({})", removal.model.repo, size)
                       : fmt::format(
                             "revision {} of {} ({} that no other revision uses)",
                             removal.revisions.front().commit,
                             removal.model.repo,
                             size
                         );
}

bool confirmed(const hub::Removal& removal) {
  require(
      ::isatty(STDIN_FILENO) == 1,
      ErrorCode::kInvalidArgument,
      "nobody can be asked whether to remove {}: give --yes",
      describe(removal)
  );
  print_error(fmt::format("Remove {} from the cache? [y/N] ", describe(removal)));
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int run_rm(const RmArgs& args) {
  const auto cache = hub::cache_dir();
  // All names are looked up before anything goes.
  std::vector<hub::ModelName> names;
  for (const std::string& text : args.models) {
    const hub::ModelName name = parse_name(text);
    require(
        std::ranges::none_of(names, [&](const auto& other) { return overlap(name, other); }),
        ErrorCode::kInvalidArgument,
        "{} is there twice",
        quote(name.repo)
    );
    hub::plan_removal(cache, name);
    names.push_back(name);
  }
  Json removed = Json::array();
  std::uintmax_t bytes = 0;
  for (const hub::ModelName& name : names) {
    const hub::Removal removal = hub::plan_removal(cache, name);
    if (!args.yes && !confirmed(removal)) {
      continue;
    }
    hub::remove(cache, removal);
    bytes += removal.bytes;
    Json commits = Json::array();
    for (const hub::CachedRevision& revision : removal.revisions) {
      commits.push_back(revision.commit);
    }
    removed.push_back(
        {{"repo", name.repo}, {"commits", std::move(commits)}, {"bytes", removal.bytes}}
    );
    if (!args.json) {
      print(fmt::format("removed {}\n", describe(removal)));
    }
  }
  if (args.json) {
    print(dump_line({{"removed", std::move(removed)}, {"bytes", bytes}}));
  }
  return 0;
}

}  // namespace

void add_rm(CLI::App& app, Action& action) {
  auto args = std::make_shared<RmArgs>();
  CLI::App& command = *app.add_subcommand("rm", "Take models out of the local hub cache");
  command.add_option("MODEL", args->models, "Repo ids; with @REVISION only that revision")
      ->required()
      ->type_name("REPO[@REVISION]");
  command.add_flag("-y,--yes", args->yes, "Don't ask");
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] { action = [args] { return run_rm(*args); }; });
}

}  // namespace saker::cli
