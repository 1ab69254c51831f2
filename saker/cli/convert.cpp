// SPDX-License-Identifier: Apache-2.0
// `saker convert`: a model quantized, dequantized or in another dtype; an adapter of PEFT as one
// that mlx-lm reads.
#include "saker/adapters/adapter_source.h"
#include "saker/adapters/save.h"
#include "saker/cli/command.h"
#include "saker/cli/convert_model.h"
#include "saker/cli/output.h"
#include "saker/cli/result_json.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

namespace saker::cli {
namespace {

struct ConvertArgs {
  std::vector<std::string> paths;  // SRC DST, or DST alone with --adapter.
  ConvertModelArgs model;
  std::string adapter;
  bool json = false;
};

int run_adapter(const ConvertArgs& args) {
  const std::string& output = args.paths.back();
  const auto report = adapters::save_mlx(adapters::read_adapter(args.adapter), output);
  if (args.json) {
    print(dump_line({
        {"output", output},
        {"tensors", report.tensors},
        {"converted", report.converted},
        {"skipped", report.skipped},
    }));
    return 0;
  }
  print(fmt::format(
      "{} tensors of {} modules in {}\n", report.tensors, report.converted.size(), output
  ));
  for (const std::string& skipped : report.skipped) {
    print_error(fmt::format("skipped {}\n", skipped));
  }
  return 0;
}

int run_convert(const ConvertArgs& args) {
  return args.adapter.empty()
             ? run_convert_model(args.model, args.paths.front(), args.paths.back(), args.json)
             : run_adapter(args);
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  auto args = std::make_shared<ConvertArgs>();
  CLI::App& command = *app.add_subcommand(
      "convert", "Quantize a model or change its dtype; write an adapter of PEFT as mlx-lm reads it"
  );
  command
      .add_option("paths", args->paths, "The model and the new folder; with --adapter the folder")
      ->required()
      ->expected(1, 2)
      ->type_name("[SRC] DST");
  const auto weights = add_weight_options(command, args->model);
  auto* adapter = command.add_option("--adapter", args->adapter, "The adapter's folder");
  adapter->type_name("DIR");
  for (auto* option : weights) {
    adapter->excludes(option);
  }
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] {
    const std::size_t expected = args->adapter.empty() ? 2 : 1;
    if (args->paths.size() != expected) {
      throw CLI::ValidationError(
          "paths", args->adapter.empty() ? "expected SRC and DST" : "with --adapter expected DST"
      );
    }
    action = [args] { return run_convert(*args); };
  });
}

}  // namespace saker::cli
