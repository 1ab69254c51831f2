// SPDX-License-Identifier: Apache-2.0
// `saker pull`: fetches a model from the hub into the local cache.
#include "saker/hub/pull.h"

#include "saker/cli/hub/fetch_model.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/checks.h"
#include "saker/hub/model_name.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>

namespace saker::cli {
namespace {

struct PullArgs {
  std::string model;
  hub::PullOptions options;
  bool json = false;
};

int run_pull(const PullArgs& args) {
  const hub::ModelName name = hub::require_model_name(args.model);
  const hub::PullReport report = fetch_model(name, args.options);
  if (!args.json) {
    print(report.path.native() + "\n");
    return 0;
  }
  print(dump_line({
      {"repo", report.repo},
      {"revision", report.revision},
      {"commit", report.commit},
      {"path", report.path.native()},
      {"files", report.files},
      {"bytes", report.bytes},
      {"received", report.received},
  }));
  return 0;
}

}  // namespace

void add_pull(CLI::App& app, Action& action) {
  auto args = std::make_shared<PullArgs>();
  CLI::App& command =
      *app.add_subcommand("pull", "Fetch a model from the Hugging Face hub and print its folder");
  command
      .add_option(
          "MODEL",
          args->model,
          "A repo id; :FILE is one GGUF file, @REVISION a branch, tag or commit [main]"
      )
      ->required()
      ->type_name("REPO[:FILE][@REVISION]");
  command
      .add_option(
          "--include",
          args->options.include,
          "Also files whose path matches (*, ?, [ab]); may be repeated"
      )
      ->allow_extra_args(false)
      ->type_name("PATTERN");
  command.add_option("--parallel", args->options.parallel, "Files to fetch at the same time [8]")
      ->check(between(1, 64))
      ->type_name("N");
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] { action = [args] { return run_pull(*args); }; });
}

}  // namespace saker::cli
