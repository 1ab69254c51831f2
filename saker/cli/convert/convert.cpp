// SPDX-License-Identifier: Apache-2.0
// `saker convert`: quantizes, dequantizes or changes the dtype of a model; converts an adapter of
// PEFT to mlx-lm's form, or fuses it with its base; makes noise in an adapter's shape, as PEFT's.
#include "saker/adapters/adapter_cache.h"
#include "saker/adapters/adapter_source.h"
#include "saker/adapters/fuse.h"
#include "saker/adapters/null_adapter.h"
#include "saker/adapters/save.h"
#include "saker/cli/convert/convert_model.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/io/writing_progress.h"
#include "saker/cli/options/command.h"
#include "saker/engine/views.h"
#include "saker/load/files/model_dir.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace saker::cli {
namespace {

struct ConvertArgs {
  // SRC DST; with --file DST; with --adapter DST or nothing; with --fuse [SRC] DST.
  std::vector<std::string> paths;
  ConvertModelArgs model;
  std::string adapter;
  std::string null;  // SEED[:INIT_SCALE[:RANK_SCALE]]; empty: the adapter itself.
  double scale = 1.0;
  bool fuse = false;
  bool sway_cache = false;
  bool json = false;
};

int run_fuse(const ConvertArgs& args) {
  const std::string& output = args.paths.back();
  const auto model = load::resolve_model(args.paths.size() == 2 ? args.paths.front() : "");
  WritingProgress progress("writing");
  const adapters::FuseOptions options{
      .strength = static_cast<float>(args.scale),
      .progress = [&](std::size_t done, std::size_t total) { progress.set(done, total); },
  };
  const auto report = adapters::fuse(model, args.adapter, output, options);
  progress.end();
  for (const std::string& warning : report.warnings) {
    print_error(fmt::format("warning: {}\n", warning));
  }
  if (args.json) {
    print(dump_line({
        {"output", output},
        {"tensors", report.tensors},
        {"bytes", report.bytes},
        {"fused", report.fused},
        {"added", report.added},
    }));
    return 0;
  }
  print(fmt::format(
      "{} tensors in {}, {} modules changed\n", report.tensors, output, report.fused.size()
  ));
  for (const std::string& name : report.added) {
    print_error(fmt::format("added {}, which the base lacks\n", name));
  }
  return 0;
}

adapters::ConversionReport write_adapter(const ConvertArgs& args, const std::string& output) {
  const auto source = adapters::read_adapter(args.adapter);
  if (args.null.empty()) {
    return adapters::save_mlx(source, output);
  }
  const engine::NamedAdapter named{.name = "", .dir = args.adapter};
  const auto null = engine::parse_view("null:" + args.null, {&named, 1}).null.value();
  const auto noise = adapters::null_adapter(
      source, {.seed = null.seed, .init_scale = null.init_scale, .rank_scale = null.rank_scale}
  );
  return adapters::save_peft(noise, output);
}

void print_left_out(const adapters::ConversionReport& report) {
  for (const std::string& skipped : report.skipped) {
    print_error(fmt::format("skipped {}\n", skipped));
  }
  for (const std::string& note : report.notes) {
    print_error(fmt::format("note: {}\n", note));
  }
}

// Converts into the cache; prints the folder.
int run_cached_adapter(const ConvertArgs& args) {
  const auto cached = adapters::cached_adapter(
      args.adapter, args.sway_cache ? adapters::AdapterCache::kSway : adapters::AdapterCache::kSaker
  );
  if (args.json) {
    print(dump_line({
        {"output", cached.dir.string()},
        {"cached", cached.was_there},
        {"tensors", cached.report.tensors},
        {"converted", cached.report.converted},
        {"skipped", cached.report.skipped},
        {"notes", cached.report.notes},
    }));
    return 0;
  }
  print(cached.dir.string() + "\n");
  print_left_out(cached.report);
  return 0;
}

int run_adapter(const ConvertArgs& args) {
  const std::string& output = args.paths.back();
  const auto report = write_adapter(args, output);
  if (args.json) {
    print(dump_line({
        {"output", output},
        {"tensors", report.tensors},
        {"converted", report.converted},
        {"skipped", report.skipped},
        {"notes", report.notes},
    }));
    return 0;
  }
  print(fmt::format(
      "{} tensors of {} modules in {}\n", report.tensors, report.converted.size(), output
  ));
  print_left_out(report);
  return 0;
}

int run_convert(const ConvertArgs& args) {
  if (args.fuse) {
    return run_fuse(args);
  }
  if (args.paths.empty()) {
    return run_cached_adapter(args);
  }
  return args.adapter.empty()
             ? run_convert_model(args.model, args.paths.front(), args.paths.back(), args.json)
             : run_adapter(args);
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  auto args = std::make_shared<ConvertArgs>();
  CLI::App& command = *app.add_subcommand(
      "convert",
      "Quantize a model, change its dtype, fuse an adapter, or write a PEFT adapter in mlx-lm's "
      "format"
  );
  command
      .add_option(
          "paths",
          args->paths,
          "The model or GGUF file and the new folder; with --file the folder; with --adapter the "
          "folder, or nothing: the cache"
      )
      ->type_name("[SRC] DST");
  const auto weights = add_weight_options(command, args->model);
  auto* adapter = command.add_option("--adapter", args->adapter, "The adapter's folder");
  adapter->type_name("DIR");
  for (auto* option : weights) {
    adapter->excludes(option);
  }
  auto* fuse =
      command.add_flag("--fuse", args->fuse, "Write SRC with the adapter fused into its weights");
  fuse->needs(adapter);
  command.add_option("--adapter-scale", args->scale, "Strength of the change that is fused [1]")
      ->needs(fuse)
      ->type_name("NUM");
  command
      .add_flag(
          "--sway-cache",
          args->sway_cache,
          "With --adapter and no DST: the cache of dlm-sway instead of our own"
      )
      ->needs(adapter)
      ->excludes(fuse);
  command.add_option("--null", args->null, "Write noise in the adapter's shape, in PEFT's form")
      ->needs(adapter)
      ->excludes(fuse)
      ->type_name("SEED[:INIT_SCALE[:RANK_SCALE]]");
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] {
    const auto& model = args->model;
    if (std::ranges::any_of(args->paths, &std::string::empty)) {
      throw CLI::ValidationError("paths", "the name is empty");
    }
    if (args->adapter.empty() && args->paths.size() != (model.modelfile.empty() ? 2 : 1)) {
      throw CLI::ValidationError(
          "paths", model.modelfile.empty() ? "expected SRC and DST" : "with --file expected DST"
      );
    }
    const bool has_draft_format =
        model.draft_bits != 0 || model.draft_group_size != 0 || !model.draft_mode.empty();
    if (has_draft_format && model.draft.empty() && model.modelfile.empty()) {
      throw CLI::ValidationError("--draft-bits and the like", "need --draft or --file");
    }
    if (!args->adapter.empty() && !args->fuse && args->paths.size() > 1) {
      throw CLI::ValidationError("paths", "with --adapter expected DST; SRC is only for --fuse");
    }
    if (args->paths.size() > 2) {
      throw CLI::ValidationError("paths", "with --fuse expected [SRC] DST");
    }
    if (args->paths.empty() && (args->fuse || !args->null.empty())) {
      throw CLI::ValidationError("paths", "expected DST");
    }
    if (!args->paths.empty() && args->sway_cache) {
      throw CLI::ValidationError("paths", "--sway-cache is without DST");
    }
    action = [args] { return run_convert(*args); };
  });
}

}  // namespace saker::cli
