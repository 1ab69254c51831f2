// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/conversion_source.h"

#include "saker/base/error.h"
#include "saker/load/convert/mlx_weights.h"
#include "saker/load/files/weight_files.h"
#include "saker/load/importers/model_folder.h"
#include "saker/load/sources/open_imported.h"
#include "saker/models/assistant.h"
#include "saker/models/detect.h"
#include "saker/models/dflash_config.h"
#include "saker/models/eagle3_config.h"
#include "saker/models/model.h"
#include "saker/models/tensor_roster.h"

#include <optional>
#include <utility>

namespace saker::load {
namespace {

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
  if (models::is_eagle3_config(config)) {
    models::read_eagle3_config(config);
    Json own = config;
    own.erase("tie_word_embeddings");  // A head tensor is used all the same.
    return {.config = std::move(own), .roster = std::nullopt, .warning = {}};
  }
  if (models::is_assistant_config(config)) {
    models::read_assistant_config(config);
    return {.config = config, .roster = std::nullopt, .warning = {}};
  }
  auto detected = models::detect_architecture(config, tensor_names(tensors));
  require(
      !models::is_encoder(detected.config),
      ErrorCode::kUnsupported,
      "[config] model_type is \"{}\": encoders run as they are and cannot be converted",
      json_string(detected.config, "model_type", "")
  );
  auto roster = models::tensor_roster(detected.config);
  return {std::move(detected.config), std::move(roster), std::move(detected.warning)};
}

}  // namespace

ConversionSource open_source(const std::filesystem::path& path) {
  ConversionSource source;
  if (auto other = importers::open_imported(path)) {
    source.imported = std::make_unique<const importers::ImportedModel>(*std::move(other));
    source.made = std::make_unique<const importers::PlaceholderTensors>(*source.imported);
    source.config = source.imported->config;
    source.tensors = source.made->tensors();
    source.warnings = source.imported->notes;
    source.folder = source.imported->folder;
    source.files = source.imported->files;
    return source;
  }
  importers::ModelFolder folder = importers::read_model_folder(path);
  source.config = std::move(folder.config);
  source.tensors = std::move(folder.read.tensors);
  source.warnings = std::move(folder.read.warnings);
  source.folder = path;
  return source;
}

Conversion plan_conversion(
    ConversionSource& source, const ConvertOptions& options, bool of_any_weights
) {
  Design design = design_of(source.config, source.tensors);
  if (!design.warning.empty()) {
    source.warnings.push_back(std::move(design.warning));
  }
  auto tensors = mlx_weights(source.tensors, design.config, source.made.get());
  return Conversion(
      {.config = source.config,
       .tensors = std::move(tensors),
       .roster = std::move(design.roster),
       .is_made = of_any_weights || source.made != nullptr},
      options
  );
}

}  // namespace saker::load
