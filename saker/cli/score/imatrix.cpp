// SPDX-License-Identifier: Apache-2.0
// `saker imatrix`: measures which inputs of a model's layers are large, for conversions to few bits.
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/io/writing_progress.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/options/command.h"
#include "saker/cli/options/model_args.h"
#include "saker/engine/measures/importance.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

namespace saker::cli {
namespace {

struct ImatrixArgs {
  ModelArgs model;
  std::string file;
  engine::ImportanceRequest request;
  engine::ImportanceTarget target;
  bool json = false;
};

void print_report(const ImatrixArgs& args, const engine::ImportanceReport& report) {
  const std::string output = args.target.path.string();
  if (args.json) {
    print(dump_line({
        {"output", output},
        {"chunks", report.chunks},
        {"tokens", report.tokens},
        {"entries", report.entries},
        {"experts", report.experts},
        {"unseen_experts", report.unseen_experts},
        {"seconds", report.seconds},
    }));
    return;
  }
  print(fmt::format(
      "{} weights in {}, from {} tokens in {} chunks, {:.1f} tokens/s\n",
      report.entries,
      output,
      report.tokens,
      report.chunks,
      report.seconds > 0 ? static_cast<double>(report.tokens) / report.seconds : 0.0
  ));
  if (report.unseen_experts > 0) {
    print_error(fmt::format(
        "warning: {} of {} experts got no token; a longer text reaches more\n",
        report.unseen_experts,
        report.experts
    ));
  }
}

int run_imatrix(ImatrixArgs args) {
  const std::string text = read_text(args.file);
  const auto engine = load_engine(args.model);
  engine::Request holder;
  holder.prompt.text = text;
  args.request.tokens = engine->prompt_tokens(holder);
  args.target.dataset = std::filesystem::path(args.file).filename().string();
  WritingProgress progress("measuring");
  args.request.progress = [&](std::int64_t done, std::int64_t total) {
    progress.set(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
  };
  const auto report = engine::write_importance(*engine, args.request, args.target);
  progress.end();
  print_report(args, report);
  return 0;
}

}  // namespace

void add_imatrix(CLI::App& app, Action& action) {
  auto args = std::make_shared<ImatrixArgs>();
  CLI::App& command = *app.add_subcommand(
      "imatrix", "Measure which inputs of a model's layers matter, for `convert --imatrix`"
  );
  add_model_args(command, args->model);
  command.add_option("FILE,-f,--file", args->file, "A text like those that the model will see")
      ->required()
      ->type_name("FILE");
  command.add_option("OUTPUT,-o,--output", args->target.path, "The new file, a GGUF")
      ->required()
      ->type_name("OUTPUT");
  command
      .add_option(
          "--context",
          args->request.chunk,
          "Tokens of a chunk, each of which runs alone; at most the model's context [512]"
      )
      ->check(between(1, 1 << 24))
      ->type_name("INT");
  command.add_option("--chunks", args->request.chunks, "Most chunks; 0: the whole text [0]")
      ->check(between(0, 1 << 24))
      ->type_name("INT");
  command.add_flag(
      "--head", args->request.head, "Measure the input of the head (output.weight), too"
  );
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] { action = [args] { return run_imatrix(*args); }; });
}

}  // namespace saker::cli
