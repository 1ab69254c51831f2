// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/convert_model.h"

#include "saker/base/json/json_numbers.h"
#include "saker/load/convert/conversion_source.h"
#include "saker/load/convert/tensor_steps.h"
#include "saker/load/convert/write_imported.h"
#include "saker/load/files/model_dir.h"

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

// True if nothing is asked for that has steps. Folders of other tools have steps all the same, since
// their tensors have other names.
bool is_unchanged(const ConversionSource& source, const ConvertOptions& options) {
  return source.imported && source.folder.empty() && !options.quantize && !options.dequantize &&
         !options.dtype && options.draft.empty();
}

}  // namespace

std::optional<DType> float_dtype(std::string_view name) {
  return name == "float32"    ? std::optional(DType::kFloat32)
         : name == "float16"  ? std::optional(DType::kFloat16)
         : name == "bfloat16" ? std::optional(DType::kBFloat16)
                              : std::nullopt;
}

ConvertReport convert_model(
    const std::filesystem::path& path,
    const std::filesystem::path& target,
    const ConvertOptions& options
) {
  ConversionSource source = open_source(path);
  if (is_unchanged(source, options)) {
    return write_imported(*source.imported, target, options);
  }
  Conversion conversion = plan_conversion(source, options);
  const auto steps = conversion.steps();
  ModelWriter writer(target, all_outputs(steps), options.max_shard_bytes);
  ConvertReport report = conversion.report();
  if (!options.draft.empty()) {
    add_draft(options, writer, report);
  }
  run_steps(steps, source.made.get(), writer, options.progress);
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

}  // namespace saker::load
