// SPDX-License-Identifier: Apache-2.0
#include "saker/load/inspect/inspect.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/load/files/adapter_files.h"
#include "saker/load/files/gguf_magic.h"
#include "saker/load/inspect/inspect_gguf_adapter.h"
#include "saker/load/inspect/inspect_model.h"
#include "saker/load/inspect/lenient.h"
#include "saker/load/inspect/tensor_headers.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

AdapterSummary summarise_adapter(const Json& config, AdapterForm form) {
  AdapterSummary adapter;
  const std::string peft_type = lenient_string(config, "peft_type");
  if (form == AdapterForm::kPeft && !peft_type.empty()) {
    adapter.type = fmt::format("PEFT {}", peft_type);
    adapter.base_model = lenient_string(config, "base_model_name_or_path");
    adapter.rank = lenient_int(config, "r");
    const double rank = static_cast<double>(adapter.rank);
    const auto rslora = config.find("use_rslora");
    const bool root = rslora != config.end() && rslora->is_boolean() && rslora->get<bool>();
    adapter.scale =
        rank > 0 ? lenient_double(config, "lora_alpha") / (root ? std::sqrt(rank) : rank) : 0.0;
    return adapter;
  }
  adapter.type = lenient_string(config, "fine_tune_type");
  adapter.base_model = lenient_string(config, "model");
  const auto parameters = config.find("lora_parameters");
  if (parameters != config.end() && parameters->is_object()) {
    adapter.rank = lenient_int(*parameters, "rank");
    adapter.scale = lenient_double(*parameters, "scale");
  }
  return adapter;
}

Inspection inspect_adapter(const fs::path& path) {
  Inspection result;
  result.kind = PathKind::kAdapter;
  const Json config = read_json_file(path / "adapter_config.json");
  require(
      config.is_object(),
      ErrorCode::kCorruptData,
      "{}: is {}, expected an object",
      quote_path(path / "adapter_config.json"),
      describe_json(config)
  );
  const auto weights = find_adapter_weights(path, config);
  const AdapterForm otherwise = has_mlx_settings(config) ? AdapterForm::kMlx : AdapterForm::kPeft;
  result.adapter = summarise_adapter(config, weights ? weights->form : otherwise);
  Headers headers;
  if (weights) {
    const bool former = weights->file == kMlxFormerWeights;
    former ? add_npz(result, headers, path / weights->file)
           : add_file(result, headers, path / weights->file);
  }
  add_totals(result, headers);
  result.parameters = count_parameters(headers, {});
  result.runnable = !result.files.empty();
  if (!result.runnable) {
    result.reason = fmt::format("{}: holds no adapters.safetensors", quote_path(path));
  }
  return result;
}

// Classes of the layers, by mlx-lm's names in the metadata. They are under "1." if "2.0" is empty,
// else under "2.".
std::vector<std::string> cache_classes(
    const std::map<std::string, std::string, std::less<>>& metadata
) {
  const auto sentinel = metadata.find("2.0");
  if (sentinel == metadata.end()) {
    return {};
  }
  const char* prefix = sentinel->second.empty() ? "1" : "2";
  std::vector<std::string> classes;
  while (true) {
    const auto found = metadata.find(fmt::format("{}.{}", prefix, classes.size()));
    if (found == metadata.end() || found->second.find("Cache") == std::string::npos) {
      return classes;
    }
    classes.push_back(found->second);
  }
}

Inspection inspect_file(const fs::path& path) {
  Inspection result;
  Headers headers;
  add_file(result, headers, path);
  add_totals(result, headers);
  result.parameters = count_parameters(headers, {});
  result.cache_layers = cache_classes(result.metadata);
  if (!result.cache_layers.empty()) {
    result.kind = PathKind::kPromptCache;
  }
  return result;
}

Inspection inspect_any(const fs::path& path, std::optional<int> kv_bits, Weights weights) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  require(
      fs::exists(status),
      ErrorCode::kNotFound,
      "{}: {}",
      quote_path(path),
      failed ? failed.message() : "does not exist"
  );
  if (!fs::is_directory(status)) {
    if (!looks_like_gguf(path)) {
      return inspect_file(path);
    }
    auto adapter = inspect_gguf_adapter(path);
    return adapter ? std::move(*adapter) : inspect_gguf(path, kv_bits, weights);
  }
  if (fs::exists(path / "adapter_config.json", failed)) {
    return inspect_adapter(path);
  }
  require(
      fs::exists(path / "config.json", failed),
      ErrorCode::kInvalidArgument,
      "{}: holds neither config.json nor adapter_config.json",
      quote_path(path)
  );
  return inspect_model(path, kv_bits, weights);
}

}  // namespace

std::string_view path_kind_name(PathKind kind) {
  switch (kind) {
    case PathKind::kModel:
      return "model";
    case PathKind::kAdapter:
      return "adapter";
    case PathKind::kPromptCache:
      return "prompt cache";
    case PathKind::kSafetensors:
      return "safetensors";
  }
  return "safetensors";
}

Inspection inspect(const fs::path& path, std::optional<int> kv_bits, Weights weights) {
  Inspection result = inspect_any(path, kv_bits, weights);
  require(
      !kv_bits || result.kind == PathKind::kModel,
      ErrorCode::kInvalidArgument,
      "{}: is of kind {}, expected a model to tell its caches",
      quote_path(path),
      path_kind_name(result.kind)
  );
  result.path = path;
  return result;
}

}  // namespace saker::load
