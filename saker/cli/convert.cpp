// SPDX-License-Identifier: Apache-2.0
// `saker convert`: an adapter of PEFT becomes one that mlx-lm reads.
#include "saker/adapters/adapter_source.h"
#include "saker/adapters/save.h"
#include "saker/cli/command.h"
#include "saker/cli/output.h"
#include "saker/cli/result_json.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>

namespace saker::cli {
namespace {

struct ConvertArgs {
  std::string adapter;
  std::string output;
  bool json = false;
};

int run_convert(const ConvertArgs& args) {
  const auto report = adapters::save_mlx(adapters::read_adapter(args.adapter), args.output);
  if (args.json) {
    print(dump_line({
        {"output", args.output},
        {"tensors", report.tensors},
        {"converted", report.converted},
        {"skipped", report.skipped},
    }));
    return 0;
  }
  print(fmt::format(
      "{} tensors of {} modules in {}\n", report.tensors, report.converted.size(), args.output
  ));
  for (const std::string& skipped : report.skipped) {
    print_error(fmt::format("skipped {}\n", skipped));
  }
  return 0;
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  auto args = std::make_shared<ConvertArgs>();
  CLI::App& command = *app.add_subcommand("convert", "Write an adapter of PEFT as mlx-lm reads it");
  command.add_option("--adapter", args->adapter, "The adapter's folder")
      ->required()
      ->type_name("DIR");
  command.add_option("DST", args->output, "The folder to write")->required();
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] { action = [args] { return run_convert(*args); }; });
}

}  // namespace saker::cli
