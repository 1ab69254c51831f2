// SPDX-License-Identifier: Apache-2.0
// `saker create`: makes a named model from a Modelfile.
#include "saker/adapters/adapter_source.h"
#include "saker/base/error.h"
#include "saker/base/mapped_file.h"
#include "saker/base/utf8.h"
#include "saker/cli/convert/convert_model.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/io/writing_progress.h"
#include "saker/cli/options/command.h"
#include "saker/cli/requests/modelfile_options.h"
#include "saker/load/create_model.h"
#include "saker/load/files/adapter_files.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <memory>
#include <string>

namespace saker::cli {
namespace {

namespace fs = std::filesystem;

struct CreateArgs {
  std::string name;
  std::string file = "Modelfile";
  ConvertModelArgs weights;
  bool json = false;
};

std::string stored_name(const std::string& text) {
  const auto name = load::parse_stored_name(text);
  require(
      name.has_value(),
      ErrorCode::kInvalidArgument,
      "{} is no name for a model, expected letters, digits, '.', '-' and '_', and maybe ':' with a "
      "tag of these",
      quote(text)
  );
  return *name;
}

fs::path find_adapter(const std::string& named, const fs::path& beside) {
  if (named.empty()) {
    return {};
  }
  const fs::path near = beside / named;
  const fs::path found =
      adapters::adapter_folder(load::may_be_adapter(near) ? near : load::find_named(named, beside));
  adapters::read_adapter(found);
  return found;
}

int run_create(const CreateArgs& args) {
  load::CreatePlan plan;
  plan.name = stored_name(args.name);
  const std::string text =
      args.file == "-" ? read_stdin() : read_file(args.file, load::kMaxModelfileBytes);
  plan.file = load::parse_modelfile(text, quote(args.file));
  plan.beside = args.file == "-" ? fs::path() : fs::path(args.file).parent_path();
  plan.adapter = find_adapter(plan.file.adapter, plan.beside);
  auto [options, warnings] = options_of(plan.file.parameters);
  plan.options = std::move(options);
  plan.convert = convert_options(args.weights);
  require(
      !plan.convert.draft_quantize || !plan.file.draft.empty(),
      ErrorCode::kInvalidArgument,
      "{} has no DRAFT that could be quantized",
      quote(args.file)
  );
  for (const std::string& instruction : plan.file.instructions) {
    if (instruction == "PARSER" || instruction == "RENDERER" || instruction == "REQUIRES") {
      warnings.push_back(instruction + " is not used: the chat template says what it says");
    }
  }
  WritingProgress progress("creating");
  plan.convert.progress = [&](std::int64_t done, std::int64_t total) {
    progress.set(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
  };
  const load::CreateReport report = load::create_model(plan);
  progress.end();
  warnings.insert(warnings.end(), report.warnings.begin(), report.warnings.end());
  for (const std::string& warning : warnings) {
    spdlog::warn("{}", warning);
  }
  print(
      args.json
          ? dump_line(
                {{"name", plan.name}, {"path", report.path.native()}, {"options", plan.options}}
            )
          : fmt::format("created {}; `saker run {}` runs it\n", plan.name, plan.name)
  );
  return 0;
}

}  // namespace

void add_create(CLI::App& app, Action& action) {
  auto args = std::make_shared<CreateArgs>();
  CLI::App& command = *app.add_subcommand("create", "Make a named model from a Modelfile");
  command.add_option("NAME", args->name, "Name of the new model: NAME or NAME:TAG")
      ->required()
      ->type_name("NAME");
  command.add_option("-f,--file", args->file, "The Modelfile [Modelfile]; '-': standard input")
      ->type_name("FILE");
  add_format_options(command, args->weights);
  add_draft_format_options(command, args->weights);
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] { action = [args] { return run_create(*args); }; });
}

}  // namespace saker::cli
