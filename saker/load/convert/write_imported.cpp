// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/write_imported.h"

#include "saker/base/json/json_numbers.h"
#include "saker/load/files/model_writer.h"
#include "saker/load/files/quantization.h"
#include "saker/models/detect.h"
#include "saker/models/model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace saker::load {

using importers::LazyTensor;

namespace {

// Weights as people count them: codes hold several; scales and biases don't count.
std::int64_t parameters_of(const LazyTensor& tensor, const nn::QuantizationConfig& config) {
  const PlannedTensor& first = tensor.outputs.front();
  std::int64_t elements = 1;
  for (const std::int64_t size : first.shape) {
    elements *= size;
  }
  if (tensor.outputs.size() == 1 || !config.format) {
    return elements;
  }
  const auto own = config.overrides.find(first.name.substr(0, first.name.rfind('.')));
  const bool has_own = own != config.overrides.end() && own->second;
  return elements * 32 / (has_own ? own->second->bits : config.format->bits);
}

}  // namespace

ConvertReport write_imported(
    const importers::ImportedModel& model,
    const std::filesystem::path& target,
    const ConvertOptions& options
) {
  std::vector<std::string> names;
  for (const PlannedTensor& output : all_outputs(model)) {
    names.push_back(output.name);
  }
  models::check_config(models::detect_architecture(model.config, names).config);
  const auto quantization = parse_quantization(model.config);
  ModelWriter writer(target, all_outputs(model), options.max_shard_bytes);
  ConvertReport report;
  for (const LazyTensor& tensor : model.tensors) {
    report.parameters += parameters_of(tensor, quantization);
    report.tensors += tensor.outputs.size();
    for (const PlannedTensor& output : tensor.outputs) {
      report.bytes += output.nbytes();
    }
  }
  write_tensors(model, writer, options.progress);
  writer.write_text("config.json", write_json(model.config, 4));
  for (const auto& [name, text] : model.files) {
    writer.write_text(name, text);
    report.copied.push_back(name);
  }
  if (!model.folder.empty()) {
    report.copied = writer.copy_files(model.folder);
  }
  report.warnings = model.notes;
  writer.commit(report.parameters);
  return report;
}

}  // namespace saker::load
