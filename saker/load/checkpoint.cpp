// SPDX-License-Identifier: Apache-2.0
#include "saker/load/checkpoint.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/load/files/quantization.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/files/weight_files.h"
#include "saker/load/gguf/gguf_model.h"
#include "saker/load/importers/model_folder.h"
#include "saker/load/importers/tensor_maker.h"
#include "saker/load/sources/open_imported.h"
#include "saker/models/detect.h"
#include "saker/models/model.h"
#include "saker/models/tensor_rules.h"
#include "saker/nn/weights/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

// A warning lists at most this many tensor names.
constexpr std::size_t kListed = 3;

// Makes the model's tensors when layers take them.
CheckpointSource lazy_source(importers::ImportedModel model) {
  CheckpointSource source;
  source.config = std::move(model.config);
  source.warnings = std::move(model.notes);
  const auto maker = std::make_shared<importers::TensorMaker>(std::move(model));
  source.tensors = maker->tensors();
  source.make = [maker](const std::string& name) { return maker->make(name); };
  return source;
}

CheckpointSource read_source(const std::filesystem::path& path) {
  std::error_code ignored;
  if (kernels::on_cpu() && std::filesystem::is_regular_file(path, ignored)) {
    gguf::BlockModel blocks = gguf::open_gguf_blocks(path);
    CheckpointSource source = lazy_source(std::move(blocks.model));
    source.formats = std::move(blocks.formats);
    return source;
  }
  if (auto other = importers::open_imported(path)) {
    return lazy_source(*std::move(other));
  }
  importers::ModelFolder folder = importers::read_model_folder(path);
  return {
      .config = std::move(folder.config),
      .tensors = std::move(folder.read.tensors),
      .warnings = std::move(folder.read.warnings),
      .errors = std::move(folder.read.errors),
  };
}

bool is_of_mtp_head(std::string_view name) {
  return name.starts_with("mtp.") || name.find(".mtp.") != std::string_view::npos;
}

}  // namespace

nn::Weights weights_of(
    TensorMap tensors,
    nn::QuantizationConfig quantization,
    std::shared_ptr<const TensorErrors> errors,
    nn::MakeTensor make
) {
  for (const auto& [name, error] : *errors) {
    tensors.emplace(name, Tensor{});
  }
  return {
      std::move(tensors),
      std::move(quantization),
      [errors = std::move(errors), make = std::move(make)](const std::string& name) {
        if (const auto error = errors->find(name); error != errors->end()) {
          throw Error(error->second);
        }
        return make(name);
      },
  };
}

std::optional<std::string> unused_warning(std::vector<std::string> names, const Json& config) {
  const models::TensorRules rules = models::tensor_rules(config);
  // Old exporters stored values that follow from the configuration.
  std::erase_if(names, [&](const std::string& name) {
    return name.ends_with("rotary_emb.inv_freq") || rules.is_unread(name, config);
  });
  if (names.empty()) {
    return std::nullopt;
  }
  const std::size_t shown = std::min(names.size(), kListed);
  std::vector<std::string> listed;
  listed.reserve(shown);
  for (std::size_t i = 0; i < shown; ++i) {
    listed.push_back(quote(names[i]));
  }
  return fmt::format(
      "{} of the checkpoint's tensors {} not used: {}{}",
      names.size(),
      names.size() == 1 ? "is" : "are",
      fmt::join(listed, ", "),
      shown < names.size() ? ", ..." : ""
  );
}

LoadedCheckpoint load_checkpoint(
    const std::filesystem::path& dir, const models::LoadProgress& progress, bool with_mtp
) {
  return load_checkpoint(read_source(dir), progress, with_mtp);
}

LoadedCheckpoint load_checkpoint(
    CheckpointSource source, const models::LoadProgress& progress, bool with_mtp
) {
  LoadedCheckpoint loaded{
      .model = nullptr,
      .mtp = nullptr,
      .config = std::move(source.config),
      .warnings = std::move(source.warnings),
  };
  nn::QuantizationConfig quantization = parse_quantization(loaded.config);
  quantization.overrides.insert(source.formats.begin(), source.formats.end());
  auto detected = models::detect_architecture(loaded.config, tensor_names(source.tensors));
  models::check_config(detected.config);
  if (!detected.warning.empty()) {
    loaded.warnings.push_back(std::move(detected.warning));
  }
  spdlog::debug(
      "loads {} tensors, {}",
      source.tensors.size(),
      quantization.format ? "quantized" : "not quantized"
  );
  for (const auto& [name, tensor] : source.tensors) {
    spdlog::trace("tensor {}: {} bytes", name, tensor.nbytes());
  }
  const auto errors = std::make_shared<const TensorErrors>(std::move(source.errors));
  const nn::Weights weights = weights_of(
      std::move(source.tensors), std::move(quantization), errors, std::move(source.make)
  );
  loaded.model = models::make_model(detected.config, weights, progress);
  bool explained = !with_mtp;  // Why the head's tensors are not used.
  if (with_mtp) {
    // An incomplete head, or another model's, must not stop the model.
    try {
      loaded.mtp = models::make_mtp_head(detected.config, weights);
    } catch (const Error& error) {
      explained = true;
      loaded.warnings.push_back(fmt::format("the MTP head is not used: {}", error.what()));
    }
  }
  auto unused = weights.unused();
  std::erase_if(unused, [&](const std::string& name) { return errors->contains(name); });
  if (explained) {
    const models::TensorRules rules = models::tensor_rules(detected.config);
    std::erase_if(unused, [&](const std::string& name) {
      return is_of_mtp_head(name) || rules.is_of_draft_head(name, detected.config);
    });
  }
  if (auto warning = unused_warning(std::move(unused), detected.config)) {
    loaded.warnings.push_back(*std::move(warning));
  }
  return loaded;
}

}  // namespace saker::load
