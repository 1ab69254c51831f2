// SPDX-License-Identifier: Apache-2.0
// `saker convert`: quantizes, dequantizes or changes the dtype of a model, or writes it as a GGUF
// file; converts an adapter of PEFT to mlx-lm's form, or fuses it with its base; makes noise in an
// adapter's shape, as PEFT's.
#include "saker/adapters/adapter_cache.h"
#include "saker/adapters/adapter_source.h"
#include "saker/adapters/fuse.h"
#include "saker/adapters/model_fit.h"
#include "saker/adapters/null_adapter.h"
#include "saker/adapters/save.h"
#include "saker/base/files/atomic_folder.h"
#include "saker/cli/convert/convert_model.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/io/writing_progress.h"
#include "saker/cli/options/command.h"
#include "saker/engine/views.h"
#include "saker/load/export/export_gguf.h"
#include "saker/load/files/adapter_files.h"
#include "saker/load/files/model_dir.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace saker::cli {
namespace {

struct ConvertArgs {
  // SRC DST; with --file DST; with --adapter [SRC] DST or nothing; with --fuse [SRC] DST.
  std::vector<std::string> paths;
  ConvertModelArgs model;
  std::string adapter;
  std::string null;  // SEED[:INIT_SCALE[:RANK_SCALE]]; empty: the adapter itself.
  double scale = 1.0;
  bool fuse = false;
  bool sway_cache = false;
  bool json = false;
};

adapters::FuseReport fuse_into(const ConvertArgs& args, const std::filesystem::path& folder) {
  const auto model = load::resolve_model(args.paths.size() == 2 ? args.paths.front() : "");
  WritingProgress progress("writing");
  const adapters::FuseOptions options{
      .strength = static_cast<float>(args.scale),
      .progress = [&](std::size_t done, std::size_t total) { progress.set(done, total); },
  };
  auto report = adapters::fuse(model, args.adapter, folder, options);
  progress.end();
  for (const std::string& warning : report.warnings) {
    print_error(fmt::format("warning: {}\n", warning));
  }
  return report;
}

// By way of a folder beside the file.
int run_fuse_to_gguf(const ConvertArgs& args) {
  const std::string& output = args.paths.back();
  load::gguf::check_new_file(output);
  const AtomicFolder between(output + ".fused");
  const std::filesystem::path fused = between.path() / "model";
  fuse_into(args, fused);
  WritingProgress progress("converting", Progress::Unit::kWeights);
  auto options = gguf_options(args.model, progress);
  options.name = std::filesystem::path(output).stem();
  const auto report = load::gguf::export_gguf(fused, output, options);
  progress.end();
  print_conversion(report, output, args.json);
  return 0;
}

int run_fuse(const ConvertArgs& args) {
  const std::string& output = args.paths.back();
  const auto report = fuse_into(args, output);
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
  auto source = adapters::read_adapter(args.adapter);
  if (args.paths.size() == 2) {
    adapters::fit_to_model(source, load::resolve_model(args.paths.front()));
  }
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

// An importance matrix for a folder.
void check_folder_importance(const ConvertModelArgs& model, const load::ConvertOptions& asked) {
  if (!model.draft.empty() || !model.modelfile.empty()) {
    throw CLI::ValidationError("--imatrix", "excludes --draft and --file");
  }
  if (!asked.quantize) {
    throw CLI::ValidationError(
        "--imatrix", "is for a DST that ends in .gguf, or with --bits or the like"
    );
  }
  if (!model.mode.empty() && model.mode != "affine") {
    throw CLI::ValidationError("--imatrix", "is for --mode affine");
  }
}

// A GGUF file takes its own options, and no others.
void check_gguf(const ConvertArgs& args) {
  const ConvertModelArgs& model = args.model;
  const bool writes_file = !args.paths.empty() && names_gguf(args.paths.back());
  if (!writes_file && !model.type.empty()) {
    throw CLI::ValidationError("--type", "is for a DST that ends in .gguf");
  }
  const load::ConvertOptions asked = convert_options(model);
  if (!writes_file && !model.imatrix.empty()) {
    check_folder_importance(model, asked);
  }
  if (writes_file && (asked.quantize || asked.dequantize || asked.dtype || !model.draft.empty() ||
                      (!args.adapter.empty() && !args.fuse))) {
    throw CLI::ValidationError(
        "paths",
        "a GGUF file takes --type, --imatrix, and --adapter with --fuse; other options are for "
        "folders"
    );
  }
}

int run_convert(const ConvertArgs& args) {
  if (args.fuse) {
    return names_gguf(args.paths.back()) ? run_fuse_to_gguf(args) : run_fuse(args);
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
      "Quantize a model, change its dtype, write a GGUF file, fuse an adapter, or write a PEFT "
      "adapter in mlx-lm's format"
  );
  command
      .add_option(
          "paths",
          args->paths,
          "The model or GGUF file and the new folder, or a new file FILE.gguf; with --file the new "
          "one alone; with --adapter the folder, or nothing: the cache"
      )
      ->type_name("[SRC] DST");
  const auto weights = add_weight_options(command, args->model);
  const auto of_gguf = add_gguf_options(command, args->model);
  for (auto* other : weights) {
    of_gguf.front()->excludes(other);
  }
  auto* adapter =
      command.add_option("--adapter", args->adapter, "The adapter's folder or GGUF file");
  adapter->type_name("DIR|FILE");
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
    check_gguf(*args);
    if (!args->adapter.empty() && !args->fuse && args->paths.size() > 1 &&
        !load::is_gguf_file(args->adapter)) {
      throw CLI::ValidationError(
          "paths", "with --adapter expected DST; SRC is for --fuse, and for adapters in GGUF files"
      );
    }
    if (args->paths.size() > 2) {
      throw CLI::ValidationError("paths", "with --adapter expected [SRC] DST");
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
