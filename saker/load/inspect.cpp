// SPDX-License-Identifier: Apache-2.0
#include "saker/load/inspect.h"

#include "saker/base/error.h"
#include "saker/base/json.h"
#include "saker/base/utf8.h"
#include "saker/load/foreign/derived_tensor.h"
#include "saker/load/foreign/foreign_source.h"
#include "saker/load/foreign/text_folder.h"
#include "saker/load/gguf/gguf_parts.h"
#include "saker/load/model_dir.h"
#include "saker/load/quantization.h"
#include "saker/load/safetensors.h"
#include "saker/load/weight_files.h"
#include "saker/models/detect.h"
#include "saker/models/model.h"
#include "saker/text/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

using Headers = std::map<std::string, SafetensorsEntry, std::less<>>;

// Fields are shown where they make sense: a strange value is the loader's to refuse, not ours.
std::int64_t lenient_int(const Json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  return found != object.end() && found->is_number_integer() ? json_int(object, key, 0) : 0;
}

std::string lenient_string(const Json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

double lenient_double(const Json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  return found != object.end() && found->is_number() ? found->get<double>() : 0.0;
}

void add_file(Inspection& result, Headers& headers, const fs::path& path) {
  SafetensorsHeader header = read_safetensors_header(path);
  std::error_code ignored;
  result.file_bytes += fs::file_size(path, ignored);
  result.files.push_back(path);
  result.metadata = std::move(header.metadata);
  for (SafetensorsEntry& entry : header.entries) {
    std::string name = entry.name;
    headers.insert_or_assign(std::move(name), std::move(entry));
  }
}

void add_totals(Inspection& result, const Headers& headers) {
  for (const auto& [name, entry] : headers) {
    DTypeTotal& total = result.dtypes[std::string(entry.dtype_name)];
    total.tensors += 1;
    total.elements += entry.element_count;
    total.bytes += entry.end - entry.begin;
    result.tensors.push_back({name, std::string(entry.dtype_name), entry.shape});
  }
}

// Of the tensors that are made when the model is loaded.
Headers derived_headers(const foreign::ForeignModel& model) {
  Headers headers;
  for (const PlannedTensor& output : foreign::all_outputs(model)) {
    SafetensorsEntry entry;
    entry.name = output.name;
    entry.dtype_name = dtype_name(output.dtype);
    entry.dtype = output.dtype;
    entry.shape = output.shape;
    entry.element_count = static_cast<std::int64_t>(output.nbytes() / dtype_size(output.dtype));
    entry.end = output.nbytes();
    headers.emplace(output.name, std::move(entry));
  }
  return headers;
}

// Bits of the packed weight of a module; none when it is not quantized.
std::optional<int> packed_bits(
    const nn::QuantizationConfig& quantization, std::string_view module
) {
  const auto found = quantization.overrides.find(module);
  const auto& format = found != quantization.overrides.end() ? found->second : quantization.format;
  return format ? std::optional(format->bits) : std::nullopt;
}

std::int64_t count_parameters(const Headers& headers, const nn::QuantizationConfig& quantization) {
  constexpr std::string_view kWeight = ".weight";
  constexpr std::string_view kScales = ".scales";
  constexpr std::string_view kBiases = ".biases";
  std::int64_t count = 0;
  for (const auto& [name, entry] : headers) {
    const std::string_view view = name;
    const auto module_of = [&](std::string_view suffix) {
      return std::string(view.substr(0, view.size() - suffix.size()));
    };
    if (view.ends_with(kScales) || view.ends_with(kBiases)) {
      const std::string module = module_of(kScales);  // Both are of one length.
      if (headers.contains(module + ".weight") && headers.contains(module + ".scales")) {
        continue;
      }
    }
    std::int64_t elements = entry.element_count;
    if (view.ends_with(kWeight) && entry.dtype == DType::kUInt32) {
      const std::string module = module_of(kWeight);
      const auto bits = packed_bits(quantization, module);
      if (bits && headers.contains(module + ".scales")) {
        elements = static_cast<std::int64_t>(static_cast<double>(elements) * 32.0 / *bits);
      }
    }
    count += elements;
  }
  return count;
}

std::string describe_quantization(const nn::QuantizationConfig& quantization) {
  if (!quantization.format) {
    return {};
  }
  const kernels::WeightFormat& format = *quantization.format;
  std::string_view mode = "affine";
  switch (format.kind) {
    case kernels::WeightKind::kMxfp4:
      mode = "mxfp4";
      break;
    case kernels::WeightKind::kNvfp4:
      mode = "nvfp4";
      break;
    case kernels::WeightKind::kMxfp8:
      mode = "mxfp8";
      break;
    default:
      break;
  }
  std::string text = fmt::format("{} bits, groups of {}, {}", format.bits, format.group_size, mode);
  if (!quantization.overrides.empty()) {
    const std::size_t count = quantization.overrides.size();
    text += fmt::format(", but {} module{}", count, count == 1 ? "" : "s");
  }
  return text;
}

// What generate and run take from generation_config.json.
std::string describe_sampling(const ModelDir& dir) {
  if (!dir.generation_config) {
    return "greedy";
  }
  const Json config = read_json_file(*dir.generation_config);
  std::string text = json_bool(config, "do_sample", false) ? "" : "greedy";
  for (const char* name :
       {"temperature",
        "top_k",
        "top_p",
        "min_p",
        "typical_p",
        "repetition_penalty",
        "min_new_tokens"}) {
    if (const auto found = config.find(name); found != config.end() && found->is_number()) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, found->dump());
    }
  }
  if (text.empty()) {
    text = "temperature 1";
  }
  const auto suppressed = config.find("suppress_tokens");
  if (suppressed != config.end() && suppressed->is_array() && !suppressed->empty()) {
    text += fmt::format(", {} tokens suppressed", suppressed->size());
  }
  return text;
}

bool names_a_template(const fs::path& file) {
  std::error_code failed;
  const Json config = fs::is_regular_file(file, failed) ? read_json_file(file) : Json();
  const auto found = config.find("chat_template");
  return config.is_object() && found != config.end() && (found->is_string() || found->is_array()) &&
         !found->empty();
}

// Where text::ChatTemplate looks.
bool has_chat_template(const ModelDir& dir) {
  return dir.chat_template || !text::additional_chat_templates(dir.path).empty() ||
         names_a_template(dir.path / "chat_template.json") ||
         names_a_template(dir.path / "tokenizer_config.json");
}

ModelSummary summarise_config(const Json& config) {
  ModelSummary model;
  model.model_type = lenient_string(config, "model_type");
  if (const auto names = config.find("architectures");
      names != config.end() && names->is_array() && !names->empty() && names->front().is_string()) {
    model.architecture = names->front().get<std::string>();
  }
  const auto section = config.find("text_config");
  const Json& text = section != config.end() && section->is_object() ? *section : config;
  model.layers = lenient_int(text, "num_hidden_layers");
  model.hidden_size = lenient_int(text, "hidden_size");
  model.heads = lenient_int(text, "num_attention_heads");
  model.kv_heads = lenient_int(text, "num_key_value_heads");
  if (model.kv_heads == 0) {
    model.kv_heads = model.heads;
  }
  model.vocab_size = lenient_int(text, "vocab_size");
  model.context_length = lenient_int(text, "max_position_embeddings");
  return model;
}

// Remembers why loading would fail, the first reason only.
template <typename Check>
void check(Inspection& result, const Check& body) {
  try {
    body();
  } catch (const Error& error) {
    if (result.reason.empty()) {
      result.reason = error.what();
    }
  }
}

std::vector<CacheLayer> model_caches(const Json& config, const Headers& headers, int kv_bits) {
  // Rows are float32 where the token table is.
  const bool exact = std::ranges::any_of(headers, [](const auto& tensor) {
    return tensor.first.ends_with("embed_tokens.weight") && tensor.second.dtype == DType::kFloat32;
  });
  std::vector<CacheLayer> layers;
  for (auto& layer :
       models::layer_caches(config, {.kv_bits = kv_bits}, exact ? mx::float32 : mx::bfloat16)) {
    layers.push_back({
        .kind = std::move(layer.kind),
        .bits = layer.state_bytes > 0 ? kernels::kUnquantizedBits : kv_bits,
        .max_size = layer.max_size,
        .token_bytes = layer.row_bytes,
        .state_bytes = layer.state_bytes,
    });
  }
  return layers;
}

Inspection inspect_model(const fs::path& path, std::optional<int> kv_bits) {
  Inspection result;
  result.kind = PathKind::kModel;
  const ModelDir dir = open_model_dir(path);
  const Json config = read_json_file(*dir.config);
  require(
      config.is_object(),
      ErrorCode::kCorruptData,
      "{}: is {}, expected an object",
      quote_path(*dir.config),
      describe_json(config)
  );
  result.model = summarise_config(config);
  std::optional<foreign::ForeignModel> other;
  nn::QuantizationConfig quantization;
  check(result, [&] {
    other = foreign::open_foreign(path);
    quantization = parse_quantization(other ? other->config : config);
  });
  result.model->quantization = describe_quantization(quantization);
  check(result, [&] { result.model->sampling = describe_sampling(dir); });
  result.model->has_tokenizer = dir.tokenizer.has_value();
  result.model->has_chat_template = has_chat_template(dir);

  WeightFiles files;
  check(result, [&] { files = find_weight_files(path); });
  result.warnings = files.warnings;
  Headers headers;
  for (const fs::path& file : files.paths) {
    add_file(result, headers, file);
  }
  const auto of_draft =
      std::erase_if(headers, [](const auto& entry) { return is_of_draft(entry.first); });
  if (of_draft > 0) {
    result.warnings.push_back(fmt::format("{} tensors are a draft's and not counted", of_draft));
  }
  result.metadata.clear();
  add_totals(result, headers);
  if (other) {
    headers = derived_headers(*other);
    result.warnings = other->notes;
  }
  Json named = other ? other->config : config;
  check(result, [&] {
    const auto keys = std::views::keys(headers);
    const std::vector<std::string> names(keys.begin(), keys.end());
    auto detected = models::detect_architecture(named, names);
    models::check_config(detected.config);
    named = std::move(detected.config);
    if (!detected.warning.empty()) {
      result.warnings.push_back(std::move(detected.warning));
    }
  });
  result.parameters = count_parameters(headers, quantization);
  check(result, [&] {
    for (const auto& [name, entry] : headers) {
      require(
          entry.dtype.has_value() && entry.dtype != DType::kFloat8E4M3,
          ErrorCode::kUnsupported,
          "tensor {} has dtype {}, which can't be loaded",
          quote(name),
          entry.dtype_name
      );
    }
  });
  result.runnable = result.reason.empty();
  if (kv_bits) {
    check(result, [&] { result.caches = model_caches(named, headers, *kv_bits); });
  }
  return result;
}

AdapterSummary summarise_adapter(const Json& config) {
  AdapterSummary adapter;
  const std::string peft_type = lenient_string(config, "peft_type");
  if (!peft_type.empty()) {
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
  result.adapter = summarise_adapter(config);
  Headers headers;
  std::error_code ignored;
  for (const char* name : {"adapters.safetensors", "adapter_model.safetensors"}) {
    if (fs::exists(path / name, ignored)) {
      add_file(result, headers, path / name);
      break;
    }
  }
  add_totals(result, headers);
  result.parameters = count_parameters(headers, {});
  result.runnable = !result.files.empty();
  if (!result.runnable) {
    result.reason = fmt::format("{}: holds no adapters.safetensors", quote_path(path));
  }
  return result;
}

// Classes of the layers, as mlx-lm names them in the metadata: under "1." in files whose "2.0" is
// empty, else under "2.".
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

Inspection inspect_gguf(const fs::path& path) {
  Inspection result;
  result.kind = PathKind::kModel;
  const foreign::ForeignModel model = foreign::open_foreign(path).value();
  result.model = summarise_config(model.config);
  const auto quantization = parse_quantization(model.config);
  result.model->quantization = describe_quantization(quantization);
  const TextFolder texts(path);
  const ModelDir dir = open_model_dir(texts.path());
  check(result, [&] { result.model->sampling = describe_sampling(dir); });
  result.model->has_tokenizer = dir.tokenizer.has_value();
  result.model->has_chat_template = has_chat_template(dir);
  for (const gguf::Part& part : gguf::open_parts(path).parts) {
    result.file_bytes += part.bytes.size();
    result.files.push_back(part.mapped->path());
  }
  const Headers headers = derived_headers(model);
  add_totals(result, headers);
  result.parameters = count_parameters(headers, quantization);
  result.warnings = model.notes;
  check(result, [&] { models::check_config(model.config); });
  result.runnable = result.reason.empty();
  return result;
}

Inspection inspect_any(const fs::path& path, std::optional<int> kv_bits) {
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
    return path.extension() == ".gguf" ? inspect_gguf(path) : inspect_file(path);
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
  return inspect_model(path, kv_bits);
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

Inspection inspect(const fs::path& path, std::optional<int> kv_bits) {
  Inspection result = inspect_any(path, kv_bits);
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
