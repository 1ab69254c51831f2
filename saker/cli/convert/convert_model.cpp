// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/convert/convert_model.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/cli/hub/size_text.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/io/writing_progress.h"
#include "saker/cli/options/checks.h"
#include "saker/load/convert/convert_model.h"
#include "saker/load/export/export_gguf.h"
#include "saker/load/export/gguf_recipe.h"
#include "saker/load/export/imatrix_file.h"
#include "saker/load/export/importance_names.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/importers/modelfile.h"
#include "saker/load/sources/open_texts.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

load::ConvertOptions options_with_draft(const ConvertModelArgs& args) {
  load::ConvertOptions options = convert_options(args);
  if (!args.draft.empty()) {
    options.draft = load::resolve_model(args.draft);
  }
  return options;
}

// Returns the model's folder; sets the draft's in `options`.
std::filesystem::path read_modelfile(const std::string& path, load::ConvertOptions& options) {
  auto file = load::read_modelfile(path);
  for (const std::string& instruction : file.ignored) {
    print_error(fmt::format("warning: {}: {} is not used\n", path, instruction));
  }
  require(
      !options.draft_quantize || !file.draft.empty(),
      ErrorCode::kInvalidArgument,
      "{} has no DRAFT that could be quantized",
      quote(path)
  );
  options.draft = std::move(file.draft);
  return std::move(file.from);
}

void add_importance(
    const std::string& imatrix, const std::filesystem::path& model, load::ConvertOptions& options
) {
  if (!imatrix.empty()) {
    const Json config = load::open_texts(model).read_json("config.json");
    const load::gguf::ImportanceNames names(config);
    options.importance = names.modules(load::gguf::read_imatrix(imatrix));
  }
}

double bits_per_weight(const load::ConvertReport& report) {
  const auto weights = static_cast<double>(report.parameters);
  return weights > 0 ? 8 * static_cast<double>(report.bytes) / weights : 0.0;
}

// Adds the draft, and the file that names it.
std::vector<CLI::Option*> add_draft_options(CLI::App& command, ConvertModelArgs& args) {
  auto* draft = command.add_option(
      "--draft", args.draft, "A draft of the model, which goes to DST/draft and is used from there"
  );
  draft->type_name("MODEL");
  auto* file = command.add_option(
      "-f,--file", args.modelfile, "A Modelfile, whose FROM is SRC and whose DRAFT is a draft"
  );
  file->type_name("FILE")->excludes(draft);
  add_draft_format_options(command, args);
  return {draft, file};
}

}  // namespace

void print_conversion(const load::ConvertReport& report, const std::string& target, bool as_json) {
  for (const std::string& warning : report.warnings) {
    print_error(fmt::format("warning: {}\n", warning));
  }
  if (as_json) {
    print(dump_line({
        {"output", target},
        {"tensors", report.tensors},
        {"bytes", report.bytes},
        {"parameters", report.parameters},
        {"bits_per_weight", bits_per_weight(report)},
        {"quantized", report.quantized},
        {"dequantized", report.dequantized},
        {"draft_bytes", report.draft_bytes},
        {"copied", report.copied},
    }));
    return;
  }
  print(fmt::format(
      "{} tensors, {}, {:.3f} bits per weight in {}\n",
      report.tensors,
      size_text(report.bytes),
      bits_per_weight(report),
      target
  ));
}

load::ConvertOptions convert_options(const ConvertModelArgs& args) {
  constexpr int kUsualBits = 4;
  const bool is_plain = args.quantize && args.bits == 0 && args.group_size == 0 &&
                        args.mode.empty() && args.recipe.empty() && args.rules.empty();
  load::ConvertOptions options;
  options.dequantize = args.dequantize;
  options.dtype = load::float_dtype(args.dtype);
  options.quantize = load::quantize_options({
      .bits = is_plain ? kUsualBits : args.bits,
      .group_size = args.group_size,
      .mode = args.mode,
      .recipe = args.recipe,
      .rules = args.rules,
  });
  options.draft_quantize = load::quantize_options({
      .bits = args.draft_bits,
      .group_size = args.draft_group_size,
      .mode = args.draft_mode,
  });
  return options;
}

void add_draft_format_options(CLI::App& command, ConvertModelArgs& args) {
  command.add_option("--draft-bits", args.draft_bits, "Quantize the draft to this many bits")
      ->type_name("N")
      ->check(at_least(1));
  command.add_option("--draft-group-size", args.draft_group_size, "As --group-size, of the draft")
      ->type_name("N")
      ->check(at_least(1));
  command.add_option("--draft-mode", args.draft_mode, "As --mode, of the draft")
      ->check(one_of({"affine", "mxfp4", "nvfp4", "mxfp8"}))
      ->type_name("affine|mxfp4|nvfp4|mxfp8");
}

std::vector<CLI::Option*> add_format_options(CLI::App& command, ConvertModelArgs& args) {
  auto* quantize =
      command.add_flag("-q,--quantize", args.quantize, "Quantize to --bits bits (default 4)");
  auto* bits = command.add_option("--bits", args.bits, "Quantize to 2, 3, 4, 5, 6 or 8 bits [4]");
  auto* group = command.add_option(
      "--group-size", args.group_size, "Number of weights that share a scale: 32, 64 or 128 [64]"
  );
  auto* mode = command.add_option("--mode", args.mode, "Quantize as affine, mxfp4, nvfp4 or mxfp8")
                   ->check(one_of({"affine", "mxfp4", "nvfp4", "mxfp8"}))
                   ->type_name("affine|mxfp4|nvfp4|mxfp8");
  auto* recipe =
      command.add_option("--recipe", args.recipe, "More bits where they help most, as in mlx-lm")
          ->check(one_of({"mixed_2_6", "mixed_3_4", "mixed_3_6", "mixed_4_6"}))
          ->type_name("mixed_2_6|mixed_3_4|mixed_3_6|mixed_4_6");
  auto* rules = command.add_option(
      "--rules,--rule",
      args.rules,
      "PATTERN=BITS[:GROUP[:MODE]] or PATTERN=float for modules by name, the first match counts: "
      "'*.mlp.down_proj=8'"
  );
  rules->allow_extra_args(false)->type_name("RULE");
  bits->type_name("N")->check(at_least(1));
  group->type_name("N")->check(at_least(1));
  auto* dtype = command.add_option("--dtype", args.dtype, "Of what is not quantized")
                    ->check(one_of({"float32", "float16", "bfloat16"}))
                    ->type_name("float32|float16|bfloat16");
  auto* dequantize =
      command.add_flag("--dequantize", args.dequantize, "Write a quantized model as floats");
  for (auto* option : {quantize, bits, group, mode, recipe, rules}) {
    dequantize->excludes(option);
  }
  return {quantize, bits, group, mode, recipe, rules, dtype, dequantize};
}

std::vector<CLI::Option*> add_weight_options(CLI::App& command, ConvertModelArgs& args) {
  auto options = add_format_options(command, args);
  const auto drafts = add_draft_options(command, args);
  options.insert(options.end(), drafts.begin(), drafts.end());
  return options;
}

bool names_gguf(const std::string& target) {
  std::string ending = std::filesystem::path(target).extension();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return ending == ".gguf";
}

std::vector<CLI::Option*> add_gguf_options(CLI::App& command, ConvertModelArgs& args) {
  auto* type = command.add_option(
      "--type",
      args.type,
      "For DST.gguf: F32, BF16, F16, Q8_0, Q6_K, Q5_K_M, Q4_K_M and so on "
      "[as the weights]"
  );
  type->type_name("TYPE")->check(CLI::Validator(
      [](const std::string& name) {
        try {
          load::gguf::find_recipe(name);
          return std::string();
        } catch (const Error& error) {
          return std::string(error.what());
        }
      },
      ""
  ));
  auto* imatrix = command.add_option(
      "--imatrix",
      args.imatrix,
      "Lose less where it matters: round by this importance matrix, as `saker imatrix` writes it; "
      "for DST.gguf, and for --bits and the like"
  );
  imatrix->type_name("FILE");
  return {type, imatrix};
}

load::gguf::GgufOptions gguf_options(const ConvertModelArgs& args, WritingProgress& progress) {
  return {
      .type = args.type,
      .importance = args.imatrix,
      .progress =
          [&progress](std::int64_t done, std::int64_t total) {
            progress.set(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
          },
  };
}

int run_convert_model(
    const ConvertModelArgs& args, const std::string& source, const std::string& target, bool json
) {
  load::ConvertOptions options = options_with_draft(args);
  const auto model = args.modelfile.empty() ? load::resolve_source(source)
                                            : read_modelfile(args.modelfile, options);
  WritingProgress progress("converting", Progress::Unit::kWeights);
  if (names_gguf(target)) {
    const auto report = load::gguf::export_gguf(model, target, gguf_options(args, progress));
    progress.end();
    print_conversion(report, target, json);
    return 0;
  }
  add_importance(args.imatrix, model, options);
  options.progress = [&](std::int64_t done, std::int64_t total) {
    progress.set(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
  };
  const auto report = load::convert_model(model, target, options);
  progress.end();
  print_conversion(report, target, json);
  return 0;
}

}  // namespace saker::cli
