// SPDX-License-Identifier: Apache-2.0
// `saker verify`: checks that a model in the hub cache still is what was fetched.
#include "saker/hub/verify.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/cli/hub/size_text.h"
#include "saker/cli/io/interrupt.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/progress.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/command.h"
#include "saker/hub/environment.h"
#include "saker/hub/model_name.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace saker::cli {
namespace {

struct VerifyArgs {
  std::string model;
  bool remove = false;
  bool json = false;
};

hub::VerifyReport verify_with_bar(const hub::ModelName& name) {
  std::stop_source stop;
  InterruptWatcher watcher;
  watcher.set_handler([&stop] { stop.request_stop(); });
  std::optional<Progress> bar;
  hub::VerifyOptions options;
  options.stop = stop.get_token();
  options.progress = [&](std::uintmax_t done, std::uintmax_t total) {
    if (!bar) {
      bar.emplace(total, hub::to_string(name), Progress::Unit::kBytes);
    }
    bar->set(done);
  };
  return hub::verify(hub::cache_dir(), name, options);
}

Json report_json(const hub::VerifyReport& report) {
  Json damaged = Json::array();
  for (const hub::DamagedFile& file : report.damaged) {
    damaged.push_back({{"path", file.path}, {"blob", file.blob.native()}, {"reason", file.reason}});
  }
  return {
      {"repo", report.repo},
      {"commits", report.commits},
      {"files", report.files},
      {"bytes", report.bytes},
      {"damaged", std::move(damaged)},
      {"unknown", report.unknown},
  };
}

// Names only the first few files, to keep the line short.
std::string describe(const hub::VerifyReport& report) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < report.damaged.size() && i < kShown; ++i) {
    const hub::DamagedFile& file = report.damaged[i];
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", quote(file.path), file.reason);
  }
  return text + (report.damaged.size() > kShown ? ", ..." : "");
}

int run_verify(const VerifyArgs& args) {
  const hub::ModelName name = hub::require_model_name(args.model);
  const hub::VerifyReport report = verify_with_bar(name);
  if (args.remove) {
    hub::remove_damaged(report);
  }
  if (args.json) {
    print(dump_line(report_json(report)));
  }
  require(
      report.damaged.empty(),
      ErrorCode::kCorruptData,
      "{}: {} of {} files damaged: {}; {}",
      args.model,
      report.damaged.size(),
      report.files,
      describe(report),
      args.remove ? "they were taken away, the next pull fetches them"
                  : "--remove takes them away, so that the next pull fetches them"
  );
  if (!args.json) {
    const std::string unknown =
        report.unknown.empty() ? ""
                               : fmt::format("; {} more have no digest", report.unknown.size());
    print(fmt::format(
        "{}: {} files ({}) are as they were fetched{}\n",
        args.model,
        report.files,
        size_text(report.bytes),
        unknown
    ));
  }
  return 0;
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  auto args = std::make_shared<VerifyArgs>();
  CLI::App& command =
      *app.add_subcommand("verify", "Check a fetched model's files against the hub's digests");
  command
      .add_option(
          "MODEL",
          args->model,
          "A repo id, with @REVISION only that revision, with :FILE only a GGUF model"
      )
      ->required()
      ->type_name("REPO[:FILE][@REVISION]");
  command.add_flag(
      "--remove", args->remove, "Remove damaged files; the next pull fetches them again"
  );
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] { action = [args] { return run_verify(*args); }; });
}

}  // namespace saker::cli
