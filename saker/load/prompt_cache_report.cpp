// SPDX-License-Identifier: Apache-2.0
#include "saker/load/prompt_cache_report.h"

#include "saker/base/json/json_members.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace saker::load {
namespace {

std::string_view format_name(CacheFormat format) {
  return format == CacheFormat::kCurrent ? "mlx-lm" : "classic";
}

std::size_t nbytes(const cache::SerializedCache& layer) {
  std::size_t total = 0;
  for (const Tensor& tensor : layer.state) {
    total += tensor.nbytes();
  }
  return total;
}

// Rows of kinds that hold keys and values, else 0.
std::int64_t rows_of_layer(const cache::SerializedCache& layer) {
  const bool rows =
      !layer.state.empty() && layer.state[0].shape.size() == 4 && layer.kind.ends_with("KVCache");
  return rows ? layer.state[0].shape[2] : 0;
}

std::string layer_text(const cache::SerializedCache& layer) {
  std::string text = layer.kind;
  if (!layer.meta.empty()) {
    text += fmt::format(" ({})", fmt::join(layer.meta, ", "));
  }
  for (const Tensor& tensor : layer.state) {
    text += fmt::format(" {} {}", dtype_name(tensor.dtype), shape_text(tensor.shape));
  }
  return text;
}

}  // namespace

Json prompt_cache_json(const PromptCache& cache) {
  Json layers = Json::array();
  std::size_t bytes = 0;
  for (const auto& layer : cache.layers) {
    Json json = {{"kind", layer.kind}, {"rows", rows_of_layer(layer)}};
    if (!layer.state.empty()) {
      json["shape"] = layer.state[0].shape;
      json["dtype"] = dtype_name(layer.state[0].dtype);
    }
    json["meta"] = layer.meta;
    json["bytes"] = nbytes(layer);
    bytes += nbytes(layer);
    layers.push_back(std::move(json));
  }
  return {
      {"format", format_name(cache.format)},
      {"rows", rows_of_layer(cache.layers.front())},
      {"bytes", bytes},
      {"layers", std::move(layers)},
      {"metadata", json_object(cache.metadata)},
  };
}

std::string prompt_cache_text(const PromptCache& cache) {
  std::string text = fmt::format("prompt cache, {} format\n", format_name(cache.format));
  for (std::size_t i = 0; i < cache.layers.size();) {
    const std::string line = layer_text(cache.layers[i]);
    std::size_t end = i + 1;
    while (end < cache.layers.size() && layer_text(cache.layers[end]) == line) {
      ++end;
    }
    text += fmt::format(
        "  layer{} {}: {}\n",
        end - i > 1 ? "s" : "",
        end - i > 1 ? fmt::format("{} to {}", i, end - 1) : fmt::to_string(i),
        line
    );
    i = end;
  }
  for (const auto& [key, value] : cache.metadata) {
    text += fmt::format("  {} = {}\n", quote(key), quote(value));
  }
  return text;
}

}  // namespace saker::load
