// SPDX-License-Identifier: Apache-2.0
#include "saker/load/inspect/inspection_report.h"

#include "saker/base/json/json.h"
#include "saker/base/json/json_members.h"
#include "saker/base/utf8.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/inspect/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

// 1234567 -> "1.23 M"
std::string short_count(double count) {
  constexpr std::array<std::pair<double, std::string_view>, 4> kUnits = {{
      {1e12, " T"},
      {1e9, " G"},
      {1e6, " M"},
      {1e3, " k"},
  }};
  for (const auto& [unit, name] : kUnits) {
    if (count >= unit) {
      return fmt::format("{:.3g}{}", count / unit, name);
    }
  }
  return fmt::format("{:.0f}", count);
}

void add_line(std::string& text, std::string_view name, std::string_view value) {
  text += fmt::format("  {:<14}{}\n", name, value);
}

// "3 QuantizedKVCache, 1 KVCache"
std::string count_names(const std::vector<std::string>& names) {
  std::map<std::string, int> counts;
  for (const std::string& name : names) {
    ++counts[name];
  }
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

void add_model(std::string& text, const ModelSummary& model) {
  const auto known = [](std::int64_t number) {
    return number > 0 ? fmt::to_string(number) : std::string("unknown");
  };
  add_line(text, "architecture", model.architecture.empty() ? "unknown" : model.architecture);
  add_line(
      text, "layers", fmt::format("{} of width {}", known(model.layers), known(model.hidden_size))
  );
  add_line(
      text,
      "heads",
      fmt::format("{} over {} of keys and values", known(model.heads), known(model.kv_heads))
  );
  add_line(text, "vocabulary", known(model.vocab_size));
  add_line(text, "context", known(model.context_length));
  add_line(text, "quantization", model.quantization.empty() ? "none" : model.quantization);
  add_line(text, "sampling", model.sampling);
  add_line(text, "tokenizer", model.has_tokenizer ? "yes" : "no");
  add_line(text, "chat template", model.has_chat_template ? "yes" : "no");
}

void add_adapter(std::string& text, const AdapterSummary& adapter) {
  add_line(text, "type", adapter.type.empty() ? "unknown" : adapter.type);
  if (!adapter.base_model.empty()) {
    add_line(text, "base model", quote(adapter.base_model, adapter.base_model.size()));
  }
  add_line(text, "rank", fmt::to_string(adapter.rank));
  add_line(text, "scale", fmt::format("{:g}", adapter.scale));
}

void add_weights(std::string& text, const Inspection& inspection) {
  std::vector<std::string> dtypes;
  dtypes.reserve(inspection.dtypes.size());
  for (const auto& [name, total] : inspection.dtypes) {
    dtypes.push_back(fmt::format(
        "{} {} ({}B)", total.tensors, name, short_count(static_cast<double>(total.bytes))
    ));
  }
  add_line(
      text, "parameters", fmt::format("{}", short_count(static_cast<double>(inspection.parameters)))
  );
  add_line(text, "tensors", dtypes.empty() ? "none" : fmt::format("{}", fmt::join(dtypes, ", ")));
  add_line(
      text,
      "size on disk",
      fmt::format(
          "{}B in {} file{}",
          short_count(static_cast<double>(inspection.file_bytes)),
          inspection.files.size(),
          inspection.files.size() == 1 ? "" : "s"
      )
  );
}

void add_file_contents(std::string& text, const Inspection& inspection) {
  for (const auto& [key, value] : inspection.metadata) {
    text += fmt::format("  metadata {} = {}\n", quote(key), quote(value));
  }
  std::size_t width = 0;
  for (const TensorSummary& tensor : inspection.tensors) {
    width = std::max(width, std::min<std::size_t>(tensor.name.size(), 60));
  }
  for (const TensorSummary& tensor : inspection.tensors) {
    text += fmt::format(
        "  {:<{}}  {:<5} {}\n", tensor.name, width, tensor.dtype, shape_text(tensor.shape)
    );
  }
}

std::string layer_range(std::size_t first, std::size_t last) {
  return first == last ? fmt::format("layer {}", first)
                       : fmt::format("layers {} to {}", first, last);
}

std::string cache_text(const CacheLayer& layer) {
  if (layer.state_bytes > 0) {
    return fmt::format("{}, a state of {} bytes", layer.kind, layer.state_bytes);
  }
  const std::string rows =
      layer.max_size ? fmt::format(", at most {} tokens", *layer.max_size) : std::string();
  return fmt::format(
      "{}, {} bits, {} bytes a token{}", layer.kind, layer.bits, layer.token_bytes, rows
  );
}

std::string bytes_text(std::size_t bytes) {
  return short_count(static_cast<double>(bytes)) + "B";
}

void add_memory(std::string& text, const MemoryNeed& need) {
  add_line(
      text,
      "memory",
      fmt::format(
          "{}: {} of weights, {} of cache for {} tokens ({} a token), {} to compute",
          bytes_text(need.total()),
          bytes_text(need.weight_bytes),
          bytes_text(need.cache_bytes),
          need.tokens,
          bytes_text(need.token_bytes),
          bytes_text(need.work_bytes)
      )
  );
  add_line(
      text,
      "fits",
      fmt::format(
          "{}, this machine has {}", need.fits() ? "yes" : "no", bytes_text(need.usable_bytes)
      )
  );
}

Json memory_json(const MemoryNeed& need) {
  return {
      {"needed_bytes", need.total()},
      {"weight_bytes", need.weight_bytes},
      {"cache_bytes", need.cache_bytes},
      {"cache_tokens", need.tokens},
      {"token_bytes", need.token_bytes},
      {"work_bytes", need.work_bytes},
      {"usable_bytes", need.usable_bytes},
      {"fits", need.fits()},
  };
}

// The number of an adapter's tensors and their modules: one line instead of each name.
void add_adapter_tensors(std::string& text, const Inspection& inspection) {
  std::map<std::string, int, std::less<>> modules;
  for (const TensorSummary& tensor : inspection.tensors) {
    std::string_view name = tensor.name;
    for (const std::string_view suffix :
         {".weight.lora_a",
          ".weight.lora_b",
          ".lora_a",
          ".lora_b",
          ".lora_A.weight",
          ".lora_B.weight",
          ".m",
          ".weight",
          ".bias"}) {
      if (name.ends_with(suffix)) {
        name.remove_suffix(suffix.size());
        break;
      }
    }
    const auto dot = name.rfind('.');
    ++modules[std::string(dot == std::string_view::npos ? name : name.substr(dot + 1))];
  }
  std::vector<std::string> parts;
  parts.reserve(modules.size());
  for (const auto& [name, count] : modules) {
    parts.push_back(fmt::format("{} {}", count, name));
  }
  add_line(text, "changes", fmt::format("tensors of {}", fmt::join(parts, ", ")));
}

// A line for each run of equal layers, and their sum.
void add_caches(std::string& text, const std::vector<CacheLayer>& caches) {
  std::size_t total = 0;
  for (std::size_t first = 0; first < caches.size();) {
    const CacheLayer& layer = caches[first];
    std::size_t last = first;
    while (last + 1 < caches.size() && caches[last + 1] == layer) {
      ++last;
    }
    add_line(text, "cache", fmt::format("{}: {}", layer_range(first, last), cache_text(layer)));
    total += (last - first + 1) * layer.token_bytes;
    first = last + 1;
  }
  add_line(text, "", fmt::format("{} bytes a token in all layers", total));
}

Json caches_json(const std::vector<CacheLayer>& caches) {
  Json layers = Json::array();
  for (const CacheLayer& layer : caches) {
    layers.push_back({
        {"kind", layer.kind},
        {"bits", layer.bits},
        {"max_size", layer.max_size ? Json(*layer.max_size) : Json(nullptr)},
        {"token_bytes", layer.token_bytes},
        {"state_bytes", layer.state_bytes},
    });
  }
  return layers;
}

Json model_json(const ModelSummary& model) {
  return {
      {"model_type", model.model_type},
      {"architecture", model.architecture},
      {"layers", model.layers},
      {"hidden_size", model.hidden_size},
      {"heads", model.heads},
      {"kv_heads", model.kv_heads},
      {"vocab_size", model.vocab_size},
      {"context_length", model.context_length},
      {"quantization", model.quantization.empty() ? Json(nullptr) : Json(model.quantization)},
      {"sampling", model.sampling},
      {"tokenizer", model.has_tokenizer},
      {"chat_template", model.has_chat_template},
  };
}

}  // namespace

Json inspection_json(const Inspection& inspection) {
  const std::string& path = inspection.path.native();
  Json result = {
      {"kind", path_kind_name(inspection.kind)},
      // JSON holds text, but a path may have any bytes.
      {"path", find_invalid_utf8(path) ? quote(path, path.size()) : path},
      {"file_bytes", inspection.file_bytes},
      {"parameters", inspection.parameters},
  };
  Json& dtypes = result["dtypes"] = Json::object();
  for (const auto& [name, total] : inspection.dtypes) {
    dtypes[name] = {
        {"tensors", total.tensors},
        {"elements", total.elements},
        {"bytes", total.bytes},
    };
  }
  if (inspection.model) {
    result["model"] = model_json(*inspection.model);
    result["runnable"] = inspection.runnable;
  }
  if (inspection.adapter) {
    const AdapterSummary& adapter = *inspection.adapter;
    result["adapter"] = {
        {"type", adapter.type},
        {"base_model", adapter.base_model},
        {"rank", adapter.rank},
        {"scale", adapter.scale},
    };
    result["runnable"] = inspection.runnable;
  }
  if (!inspection.reason.empty()) {
    result["reason"] = inspection.reason;
  }
  if (!inspection.cache_layers.empty()) {
    result["cache_layers"] = inspection.cache_layers;
  }
  if (inspection.memory) {
    result["memory"] = memory_json(*inspection.memory);
  }
  if (!inspection.caches.empty()) {
    result["caches"] = caches_json(inspection.caches);
  }
  if (!inspection.metadata.empty()) {
    result["metadata"] = json_object(inspection.metadata);
  }
  Json& tensors = result["tensors"] = Json::array();
  for (const TensorSummary& tensor : inspection.tensors) {
    tensors.push_back({{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}});
  }
  result["warnings"] = inspection.warnings;
  return result;
}

std::string inspection_text(const Inspection& inspection) {
  std::string text = fmt::format(
      "{}: {}\n",
      quote_path(inspection.path),
      inspection.model ? fmt::format("{} model", inspection.model->model_type)
                       : std::string(path_kind_name(inspection.kind))
  );
  if (inspection.model || inspection.adapter) {
    add_line(
        text,
        "runs",
        inspection.runnable ? std::string("yes") : fmt::format("no: {}", inspection.reason)
    );
  }
  if (inspection.model) {
    add_model(text, *inspection.model);
  }
  if (inspection.adapter) {
    add_adapter(text, *inspection.adapter);
  }
  if (!inspection.cache_layers.empty()) {
    add_line(text, "layers", count_names(inspection.cache_layers));
  }
  add_weights(text, inspection);
  if (inspection.memory) {
    add_memory(text, *inspection.memory);
  }
  if (!inspection.caches.empty()) {
    add_caches(text, inspection.caches);
  }
  if (inspection.adapter) {
    add_adapter_tensors(text, inspection);
  } else if (!inspection.model) {
    add_file_contents(text, inspection);
  }
  for (const std::string& warning : inspection.warnings) {
    add_line(text, "warning", warning);
  }
  return text;
}

}  // namespace saker::load
