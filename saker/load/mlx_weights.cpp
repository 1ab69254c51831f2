// SPDX-License-Identifier: Apache-2.0
#include "saker/load/mlx_weights.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

constexpr std::string_view kExperts = ".mlp.experts.";

// Of models for text, images and sound; "model." may come first.
constexpr std::array<std::string_view, 6> kImageScopes = {
    "vision_tower.",
    "multi_modal_projector.",
    "audio_tower.",
    "embed_audio.",
    "embed_vision.",
    "vision_embedder.",
};

const Json& text_part(const Json& config) {
  const auto text = config.find("text_config");
  return text != config.end() && text->is_object() ? *text : config;
}

// Its head is the embedding: a head tensor is a copy that nobody reads.
bool is_tied(const Json& config) {
  const Json& text = text_part(config);
  const bool nested = text.contains("tie_word_embeddings");
  return json_bool(nested ? text : config, "tie_word_embeddings", false);
}

bool is_of_images(std::string_view name) {
  constexpr std::string_view kModel = "model.";
  if (name.starts_with(kModel)) {
    name.remove_prefix(kModel.size());
  }
  return std::ranges::any_of(kImageScopes, [&](std::string_view scope) {
    return name.starts_with(scope);
  });
}

// What layers of Gemma 4 that attend to another layer's keys and values have of their own, and
// ranges of activations seen in training.
bool is_unused_of_gemma4(std::string_view name, const Json& config) {
  if (!json_string(config, "model_type", "").starts_with("gemma4")) {
    return false;
  }
  for (const std::string_view range : {"input_max", "input_min", "output_max", "output_min"}) {
    if (name.find(range) != std::string_view::npos) {
      return true;
    }
  }
  constexpr std::string_view kLayers = "layers.";
  const auto at = name.find(kLayers);
  if (at == std::string_view::npos) {
    return false;
  }
  const std::string_view rest = name.substr(at + kLayers.size());
  std::int64_t layer = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
  const std::string_view part = rest.substr(static_cast<std::size_t>(end - rest.data()));
  const bool makes_rows = part.starts_with(".self_attn.k_proj.") ||
                          part.starts_with(".self_attn.v_proj.") ||
                          part.starts_with(".self_attn.k_norm.");
  const Json& text = text_part(config);
  const auto own =
      json_int(text, "num_hidden_layers", 0) - json_int(text, "num_kv_shared_layers", 0);
  return error == std::errc() && makes_rows && layer >= own;
}

bool is_unused(std::string_view name, const Json& config) {
  return name.ends_with("rotary_emb.inv_freq") || is_of_images(name) ||
         is_unused_of_gemma4(name, config) ||
         (name.find("lm_head.") != std::string_view::npos && is_tied(config));
}

std::string mlx_name(const std::string& name, const TensorMap& tensors) {
  constexpr std::string_view kNested = "model.language_model.";
  if (name.starts_with(kNested)) {
    return fmt::format("language_model.model.{}", name.substr(kNested.size()));
  }
  if (tensors.contains("model.language_model.embed_tokens.weight") &&
      name.starts_with("lm_head.")) {
    return fmt::format("language_model.{}", name);
  }
  // A bare base model.
  return tensors.contains("embed_tokens.weight") ? fmt::format("model.{}", name) : name;
}

// "P.mlp.experts.3.up_proj.weight" is part 3 of "P.mlp.switch_mlp.up_proj.weight".
struct ExpertName {
  std::string stack;
  std::size_t expert = 0;
};

std::optional<ExpertName> expert_name(std::string_view name) {
  const auto at = name.find(kExperts);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = name.substr(at + kExperts.size());
  ExpertName result;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), result.expert);
  const auto digits = static_cast<std::size_t>(end - rest.data());
  if (error != std::errc() || digits == rest.size() || rest[digits] != '.') {
    return std::nullopt;
  }
  result.stack = fmt::format("{}.mlp.switch_mlp{}", name.substr(0, at), rest.substr(digits));
  return result;
}

ModelTensor stacked(const std::string& name, const std::map<std::size_t, Tensor>& experts) {
  ModelTensor result{.name = name, .parts = {}, .stacked = true};
  const Tensor& first = experts.begin()->second;
  for (const auto& [expert, tensor] : experts) {
    require(
        expert == result.parts.size() && tensor.dtype == first.dtype && tensor.shape == first.shape,
        ErrorCode::kCorruptData,
        "{}: expert {} is {} {}, expected expert {} with {} {}",
        quote(name),
        expert,
        dtype_name(tensor.dtype),
        shape_text(tensor.shape),
        result.parts.size(),
        dtype_name(first.dtype),
        shape_text(first.shape)
    );
    result.parts.push_back(tensor);
  }
  return result;
}

}  // namespace

std::vector<std::int64_t> ModelTensor::shape() const {
  auto shape = parts.front().shape;
  if (stacked) {
    shape.insert(shape.begin(), static_cast<std::int64_t>(parts.size()));
  }
  return shape;
}

std::vector<ModelTensor> mlx_weights(const TensorMap& tensors, const Json& config) {
  std::map<std::string, ModelTensor> named;
  std::map<std::string, std::map<std::size_t, Tensor>> experts;
  for (const auto& [name, tensor] : tensors) {
    if (is_unused(name, config)) {
      continue;
    }
    const std::string renamed = mlx_name(name, tensors);
    if (const auto expert = expert_name(renamed)) {
      experts[expert->stack].emplace(expert->expert, tensor);
    } else {
      named.emplace(renamed, ModelTensor{.name = renamed, .parts = {tensor}, .stacked = false});
    }
  }
  for (const auto& [name, parts] : experts) {
    named.emplace(name, stacked(name, parts));
  }
  std::vector<ModelTensor> result;
  result.reserve(named.size());
  for (auto& [name, tensor] : named) {
    result.push_back(std::move(tensor));
  }
  return result;
}

}  // namespace saker::load
