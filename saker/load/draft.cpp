// SPDX-License-Identifier: Apache-2.0
#include "saker/load/draft.h"

#include "saker/base/json/json.h"
#include "saker/load/checkpoint.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/files/quantization.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/files/weight_files.h"
#include "saker/load/importers/model_folder.h"
#include "saker/load/sources/open_imported.h"
#include "saker/models/decoder.h"
#include "saker/nn/weights/weights.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace saker::load {
namespace {

// The weights of a draft that is not a model.
class DraftWeights {
 public:
  DraftWeights(TensorMap tensors, const Json& config, TensorErrors errors)
      : config_(config),
        errors_(std::make_shared<const TensorErrors>(std::move(errors))),
        weights_(load::weights_of(std::move(tensors), parse_quantization(config), errors_)) {}

  explicit DraftWeights(importers::ModelFolder folder)
      : DraftWeights(std::move(folder.read.tensors), folder.config, std::move(folder.read.errors)) {
  }

  const nn::Weights& operator*() const { return weights_; }

  void warn_of_unused(LoadedDraft& loaded) const {
    auto names = weights_.unused();
    std::erase_if(names, [&](const std::string& name) { return errors_->contains(name); });
    if (auto warning = unused_warning(std::move(names), config_)) {
      loaded.warnings.push_back(*std::move(warning));
    }
  }

 private:
  Json config_;
  std::shared_ptr<const TensorErrors> errors_;
  nn::Weights weights_;
};

LoadedDraft load_dflash(importers::ModelFolder folder, const models::ModelInfo& target) {
  LoadedDraft loaded{.warnings = std::move(folder.read.warnings)};
  const models::DflashConfig read = models::read_dflash_config(folder.config);
  models::check_target(read, target);
  const DraftWeights weights(
      models::dflash_tensors(std::move(folder.read.tensors)),
      folder.config,
      std::move(folder.read.errors)
  );
  loaded.dflash = std::make_unique<const models::DflashDraft>(read, *weights);
  weights.warn_of_unused(loaded);
  return loaded;
}

LoadedDraft load_eagle3(importers::ModelFolder folder, const models::ModelInfo& target) {
  LoadedDraft loaded{.warnings = std::move(folder.read.warnings)};
  const models::Eagle3Config read = models::read_eagle3_config(folder.config);
  models::check_target(read, target);
  const DraftWeights weights(
      models::eagle3_tensors(std::move(folder.read.tensors)),
      folder.config,
      std::move(folder.read.errors)
  );
  loaded.eagle3 = std::make_unique<const models::Eagle3Head>(read, target, *weights);
  weights.warn_of_unused(loaded);
  return loaded;
}

LoadedDraft load_assistant(importers::ModelFolder folder, const models::ModelInfo& target) {
  LoadedDraft loaded{.warnings = std::move(folder.read.warnings)};
  const auto read = models::read_assistant_config(folder.config);
  models::check_target(read, target);
  const DraftWeights weights(std::move(folder));
  loaded.assistant = std::make_unique<const models::AssistantDraft>(read, target, *weights);
  weights.warn_of_unused(loaded);
  return loaded;
}

// Empty unless the folder holds an MTP head by itself.
std::optional<LoadedDraft> load_mtp(
    importers::ModelFolder folder, const models::ModelInfo& target
) {
  LoadedDraft loaded{.warnings = std::move(folder.read.warnings)};
  const Json config = folder.config;
  const DraftWeights weights(std::move(folder));
  if (models::find_body_scope(*weights) || !models::mtp_scope(*weights)) {
    return std::nullopt;
  }
  loaded.mtp = models::make_mtp_head(config, *weights);
  if (!loaded.mtp) {
    return std::nullopt;
  }
  models::check_target(*loaded.mtp, target);
  weights.warn_of_unused(loaded);
  return loaded;
}

}  // namespace

std::string_view draft_kind(const Json& config, std::span<const std::string> tensors) {
  const auto has = [&](std::string_view end) {
    return std::ranges::any_of(tensors, [&](const auto& name) { return name.ends_with(end); });
  };
  if (models::is_dflash_config(config)) {
    return "DFlash draft";
  }
  if (models::is_eagle3_config(config)) {
    return "EAGLE-3 head";
  }
  if (models::is_assistant_config(config)) {
    return "assistant";
  }
  return has("pre_fc_norm_hidden.weight") && !has("embed_tokens.weight") ? "MTP head" : "";
}

LoadedDraft load_draft(const std::filesystem::path& dir, const models::ModelInfo& target) {
  // Other programs' formats hold only smaller models.
  if (!importers::is_imported(dir) && open_model_dir(dir).config) {
    importers::ModelFolder folder = importers::read_model_folder(dir);
    if (models::is_dflash_config(folder.config)) {
      return load_dflash(std::move(folder), target);
    }
    if (models::is_eagle3_config(folder.config)) {
      return load_eagle3(std::move(folder), target);
    }
    if (models::is_assistant_config(folder.config)) {
      return load_assistant(std::move(folder), target);
    }
    if (auto head = load_mtp(std::move(folder), target)) {
      return *std::move(head);
    }
  }
  LoadedCheckpoint checkpoint = load_checkpoint(dir);
  LoadedDraft loaded{.warnings = std::move(checkpoint.warnings)};
  loaded.model = std::move(checkpoint.model);
  return loaded;
}

}  // namespace saker::load
