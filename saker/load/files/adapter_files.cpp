// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/adapter_files.h"

#include <system_error>

namespace saker::load {
namespace {

bool has_object(const Json& config, std::string_view key) {
  const auto found = config.find(key);
  return found != config.end() && found->is_object();
}

bool has_text(const Json& config, std::string_view key) {
  const auto found = config.find(key);
  return found != config.end() && found->is_string();
}

}  // namespace

bool has_mlx_settings(const Json& config) {
  return config.is_object() &&
         (has_object(config, "lora_parameters") ||
          (has_text(config, "fine_tune_type") && config["fine_tune_type"] == "full"));
}

bool has_peft_settings(const Json& config) {
  return config.is_object() && has_text(config, "peft_type");
}

std::optional<AdapterWeights> find_adapter_weights(
    const std::filesystem::path& dir, const Json& config
) {
  std::error_code ignored;
  const auto has = [&](std::string_view name) {
    return std::filesystem::exists(dir / name, ignored);
  };
  const bool only_peft = has_peft_settings(config) && !has_mlx_settings(config);
  const bool only_mlx = has_mlx_settings(config) && !has_peft_settings(config);
  const bool peft = has(kPeftWeights);
  for (const std::string_view name : {kMlxWeights, kMlxFormerWeights}) {
    // A former file beside PEFT's counts only if the settings are mlx-lm's.
    const bool weaker = name == kMlxFormerWeights && !only_mlx;
    if (has(name) && !(peft && (only_peft || weaker))) {
      return AdapterWeights{name, only_peft ? AdapterForm::kPeft : AdapterForm::kMlx};
    }
  }
  if (!peft) {
    return std::nullopt;
  }
  return AdapterWeights{kPeftWeights, only_mlx ? AdapterForm::kMlx : AdapterForm::kPeft};
}

std::optional<AdapterWeights> find_adapter_weights(const std::filesystem::path& dir) {
  std::error_code ignored;
  const auto file = dir / kAdapterConfig;
  return find_adapter_weights(
      dir, std::filesystem::exists(file, ignored) ? read_json_file(file) : Json()
  );
}

bool is_gguf_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return path.extension() == ".gguf" && std::filesystem::is_regular_file(path, ignored);
}

bool may_be_adapter(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) || is_gguf_file(path);
}

std::optional<std::filesystem::path> lone_gguf_file(const std::filesystem::path& dir) {
  std::error_code failed;
  std::optional<std::filesystem::path> found;
  if (std::filesystem::exists(dir / kAdapterConfig, failed) || find_adapter_weights(dir, Json())) {
    return std::nullopt;
  }
  for (std::filesystem::directory_iterator it(dir, failed), end; !failed && it != end;
       it.increment(failed)) {
    if (is_gguf_file(it->path())) {
      if (found) {
        return std::nullopt;
      }
      found = it->path();
    }
  }
  return found;
}

}  // namespace saker::load
