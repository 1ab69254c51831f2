// SPDX-License-Identifier: Apache-2.0
#include "saker/load/checkpoint.h"

#include "saker/base/json.h"
#include "saker/base/utf8.h"
#include "saker/load/foreign/derived_tensor.h"
#include "saker/load/foreign/foreign_source.h"
#include "saker/load/model_dir.h"
#include "saker/load/quantization.h"
#include "saker/load/safetensors.h"
#include "saker/load/weight_files.h"
#include "saker/models/detect.h"
#include "saker/models/model.h"
#include "saker/nn/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

// Tensor names that a warning lists at most.
constexpr std::size_t kListed = 3;

CheckpointSource read_source(const std::filesystem::path& path) {
  if (auto other = foreign::open_foreign(path)) {
    return {std::move(other->config), foreign::make_tensors(*other), std::move(other->notes), {}};
  }
  Json config = read_json_file(config_of(open_model_dir(path)));
  parse_quantization(config);
  ModelTensors read = read_model_tensors(path);
  return {std::move(config), std::move(read.tensors), std::move(read.warnings), {}};
}

}  // namespace

std::optional<std::string> unused_warning(std::vector<std::string> names) {
  // Old exporters stored what follows from the configuration.
  std::erase_if(names, [](const std::string& name) {
    return name.ends_with("rotary_emb.inv_freq");
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
  const nn::Weights weights(
      std::move(source.tensors), std::move(quantization), std::move(source.make)
  );
  loaded.model = models::make_model(detected.config, weights, progress);
  if (with_mtp) {
    loaded.mtp = models::make_mtp_head(detected.config, weights);
  }
  auto unused = weights.unused();
  if (!with_mtp) {
    std::erase_if(unused, [](const std::string& name) { return name.starts_with("mtp."); });
  }
  if (auto warning = unused_warning(std::move(unused))) {
    loaded.warnings.push_back(*std::move(warning));
  }
  return loaded;
}

}  // namespace saker::load
