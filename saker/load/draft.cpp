// SPDX-License-Identifier: Apache-2.0
#include "saker/load/draft.h"

#include "saker/base/json.h"
#include "saker/load/checkpoint.h"
#include "saker/load/model_dir.h"
#include "saker/load/quantization.h"
#include "saker/load/safetensors.h"
#include "saker/load/weight_files.h"
#include "saker/nn/weights.h"

#include <utility>

namespace saker::load {

LoadedDraft load_draft(const std::filesystem::path& dir, const models::ModelInfo& target) {
  LoadedDraft loaded;
  const ModelDir files = open_model_dir(dir);
  const Json config = files.config ? read_json_file(*files.config) : Json();
  if (!models::is_dflash_config(config)) {
    LoadedCheckpoint checkpoint = load_checkpoint(dir);
    loaded.model = std::move(checkpoint.model);
    loaded.warnings = std::move(checkpoint.warnings);
    return loaded;
  }
  const models::DflashConfig read = models::read_dflash_config(config);
  models::check_target(read, target);
  WeightFiles weight_files = find_weight_files(dir);
  loaded.warnings = std::move(weight_files.warnings);
  const nn::Weights weights(
      models::dflash_tensors(read_weight_files(weight_files)), parse_quantization(config)
  );
  loaded.dflash = std::make_unique<const models::DflashDraft>(read, weights);
  if (auto warning = unused_warning(weights.unused())) {
    loaded.warnings.push_back(*std::move(warning));
  }
  return loaded;
}

}  // namespace saker::load
