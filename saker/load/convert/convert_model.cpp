// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/convert_model.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/json/json_numbers.h"
#include "saker/base/utf8.h"
#include "saker/load/convert/conversion.h"
#include "saker/load/convert/mlx_weights.h"
#include "saker/load/convert/tensor_steps.h"
#include "saker/load/convert/write_imported.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/files/weight_files.h"
#include "saker/load/importers/lazy_tensor.h"
#include "saker/load/importers/model_folder.h"
#include "saker/load/importers/placeholder_tensors.h"
#include "saker/load/sources/open_imported.h"
#include "saker/models/assistant.h"
#include "saker/models/detect.h"
#include "saker/models/dflash_config.h"
#include "saker/models/tensor_roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

std::vector<PlannedTensor> all_outputs(const std::vector<TensorStep>& steps) {
  std::vector<PlannedTensor> outputs;
  for (const TensorStep& step : steps) {
    for (PlannedTensor& output : outputs_of(step)) {
      outputs.push_back(std::move(output));
    }
  }
  return outputs;
}

// The architecture according to the configuration.
struct Design {
  Json config;                                 // With a known `model_type`.
  std::optional<models::TensorRoster> roster;  // Empty: a draft with an architecture of its own.
  std::string warning;                         // Empty: none.
};

Design design_of(const Json& config, const TensorMap& tensors) {
  if (models::is_dflash_config(config)) {
    models::read_dflash_config(config);
    return {.config = config, .roster = std::nullopt, .warning = {}};
  }
  if (models::is_assistant_config(config)) {
    models::read_assistant_config(config);
    return {.config = config, .roster = std::nullopt, .warning = {}};
  }
  auto detected = models::detect_architecture(config, tensor_names(tensors));
  auto roster = models::tensor_roster(detected.config);
  return {std::move(detected.config), std::move(roster), std::move(detected.warning)};
}

void add_draft(const ConvertOptions& options, const ModelWriter& writer, ConvertReport& report) {
  ConvertOptions own;
  own.quantize = options.draft_quantize;
  own.max_shard_bytes = options.max_shard_bytes;
  own.progress = options.progress;
  const ConvertReport draft = convert_model(options.draft, writer.folder() / "draft", own);
  report.draft_bytes = draft.bytes;
  for (const std::string& warning : draft.warnings) {
    report.warnings.push_back("draft: " + warning);
  }
}

// A conversion's input, whatever its origin.
struct Source {
  Json config;
  TensorMap tensors;
  std::vector<std::string> warnings;
  const importers::PlaceholderTensors* made = nullptr;  // Knows the tensors without bytes.
  std::filesystem::path folder;                         // With texts and a draft; empty: `files`.
  std::map<std::string, std::string> files;
};

ConvertReport convert_source(
    Source source, const std::filesystem::path& target, const ConvertOptions& options
) {
  Design design = design_of(source.config, source.tensors);
  if (!design.warning.empty()) {
    source.warnings.push_back(std::move(design.warning));
  }
  auto tensors = mlx_weights(source.tensors, design.config);
  Conversion conversion(
      {.config = std::move(source.config),
       .tensors = std::move(tensors),
       .roster = std::move(design.roster),
       .is_made = source.made != nullptr},
      options
  );
  const auto steps = conversion.steps();
  ModelWriter writer(target, all_outputs(steps), options.max_shard_bytes);
  ConvertReport report = conversion.report();
  if (!options.draft.empty()) {
    add_draft(options, writer, report);
  }
  run_steps(steps, source.made, writer, options.progress);
  writer.write_text("config.json", write_json(conversion.config(), 4));
  for (const auto& [name, text] : source.files) {
    writer.write_text(name, text);
    report.copied.push_back(name);
  }
  if (!source.folder.empty()) {
    report.copied = writer.copy_files(source.folder);
  }
  report.warnings.insert(report.warnings.end(), source.warnings.begin(), source.warnings.end());
  if (options.draft.empty() && !source.folder.empty() && find_draft(source.folder)) {
    report.warnings.emplace_back("the model's draft was not written: --draft names one");
  }
  writer.commit(report.parameters);
  return report;
}

Source open_folder(const std::filesystem::path& folder) {
  importers::ModelFolder source = importers::read_model_folder(folder);
  return {
      .config = std::move(source.config),
      .tensors = std::move(source.read.tensors),
      .warnings = std::move(source.read.warnings),
      .folder = folder,
      .files = {},
  };
}

// An unchanged file has no steps; folders do, since their tensors have another tool's names.
ConvertReport convert_imported(
    const importers::ImportedModel& model,
    const std::filesystem::path& target,
    const ConvertOptions& options
) {
  const bool bare = !options.quantize && !options.dequantize && !options.dtype &&
                    options.draft.empty() && model.folder.empty();
  if (bare) {
    return write_imported(model, target, options);
  }
  const importers::PlaceholderTensors made(model);
  return convert_source(
      {.config = model.config,
       .tensors = made.tensors(),
       .warnings = model.notes,
       .made = &made,
       .folder = model.folder,
       .files = model.files},
      target,
      options
  );
}

}  // namespace

std::optional<DType> float_dtype(std::string_view name) {
  return name == "float32"    ? std::optional(DType::kFloat32)
         : name == "float16"  ? std::optional(DType::kFloat16)
         : name == "bfloat16" ? std::optional(DType::kBFloat16)
                              : std::nullopt;
}

ConvertReport convert_model(
    const std::filesystem::path& source,
    const std::filesystem::path& target,
    const ConvertOptions& options
) {
  const auto other = importers::open_imported(source);
  return other ? convert_imported(*other, target, options)
               : convert_source(open_folder(source), target, options);
}

}  // namespace saker::load
