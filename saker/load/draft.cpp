// SPDX-License-Identifier: Apache-2.0
#include "saker/load/draft.h"

#include "saker/base/json.h"
#include "saker/load/checkpoint.h"
#include "saker/load/foreign/foreign_source.h"
#include "saker/load/model_dir.h"
#include "saker/load/quantization.h"
#include "saker/load/safetensors.h"
#include "saker/load/weight_files.h"
#include "saker/models/decoder.h"
#include "saker/nn/weights.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace saker::load {
namespace {

TensorMap read_tensors(const std::filesystem::path& dir, LoadedDraft& loaded) {
  auto [tensors, warnings] = read_model_tensors(dir);
  loaded.warnings = std::move(warnings);
  return std::move(tensors);
}

void warn_of_unused(const nn::Weights& weights, LoadedDraft& loaded) {
  if (auto warning = unused_warning(weights.unused())) {
    loaded.warnings.push_back(*std::move(warning));
  }
}

void load_dflash(
    const std::filesystem::path& dir,
    const Json& config,
    const models::ModelInfo& target,
    LoadedDraft& loaded
) {
  const models::DflashConfig read = models::read_dflash_config(config);
  models::check_target(read, target);
  const nn::Weights weights(
      models::dflash_tensors(read_tensors(dir, loaded)), parse_quantization(config)
  );
  loaded.dflash = std::make_unique<const models::DflashDraft>(read, weights);
  warn_of_unused(weights, loaded);
}

void load_assistant(
    const std::filesystem::path& dir,
    const Json& config,
    const models::ModelInfo& target,
    LoadedDraft& loaded
) {
  const auto read = models::read_gemma4_assistant_config(config);
  models::check_target(read, target);
  const nn::Weights weights(read_tensors(dir, loaded), parse_quantization(config));
  loaded.assistant = std::make_unique<const models::Gemma4Assistant>(read, target, weights);
  warn_of_unused(weights, loaded);
}

// Whether the folder holds an MTP head by itself.
bool load_mtp(
    const std::filesystem::path& dir,
    const Json& config,
    const models::ModelInfo& target,
    LoadedDraft& loaded
) {
  const nn::Weights weights(read_tensors(dir, loaded), parse_quantization(config));
  if (models::find_body_scope(weights) || !models::mtp_scope(weights)) {
    return false;
  }
  loaded.mtp = models::make_mtp_head(config, weights);
  if (loaded.mtp) {
    models::check_target(*loaded.mtp, target);
    warn_of_unused(weights, loaded);
  }
  return loaded.mtp != nullptr;
}

}  // namespace

std::string_view draft_kind(const Json& config, std::span<const std::string> tensors) {
  const auto has = [&](std::string_view end) {
    return std::ranges::any_of(tensors, [&](const auto& name) { return name.ends_with(end); });
  };
  if (models::is_dflash_config(config)) {
    return "DFlash draft";
  }
  if (models::is_gemma4_assistant_config(config)) {
    return "Gemma 4 assistant";
  }
  return has("pre_fc_norm_hidden.weight") && !has("embed_tokens.weight") ? "MTP head" : "";
}

LoadedDraft load_draft(const std::filesystem::path& dir, const models::ModelInfo& target) {
  LoadedDraft loaded;
  // Other programs' formats hold smaller models only.
  const bool is_model = foreign::is_foreign(dir);
  const auto file = is_model ? std::nullopt : open_model_dir(dir).config;
  const Json config = file ? read_json_file(*file) : Json();
  if (models::is_dflash_config(config)) {
    load_dflash(dir, config, target, loaded);
  } else if (models::is_gemma4_assistant_config(config)) {
    load_assistant(dir, config, target, loaded);
  } else if (!file || !load_mtp(dir, config, target, loaded)) {
    LoadedCheckpoint checkpoint = load_checkpoint(dir);
    loaded.model = std::move(checkpoint.model);
    loaded.warnings = std::move(checkpoint.warnings);
  }
  return loaded;
}

}  // namespace saker::load
