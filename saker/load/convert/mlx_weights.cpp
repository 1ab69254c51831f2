// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/mlx_weights.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/models/image_parts.h"

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

const Json& text_part(const Json& config) {
  const auto text = config.find("text_config");
  return text != config.end() && text->is_object() ? *text : config;
}

// The head is the embedding: a head tensor would be an unused copy.
bool is_tied(const Json& config) {
  const Json& text = text_part(config);
  const bool nested = text.contains("tie_word_embeddings");
  return json_bool(nested ? text : config, "tie_word_embeddings", false);
}

// True for Gemma 4's tensors that are never used: own keys and values of layers that attend to
// another layer's, and ranges of activations seen in training.
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
  return name.find("rotary_emb.") != std::string_view::npos || models::is_of_images(name) ||
         is_unused_of_gemma4(name, config) ||
         (name.find("lm_head.") != std::string_view::npos && is_tied(config));
}

bool is_qwen3_5(const Json& config) {
  return json_string(config, "model_type", "").starts_with("qwen3_5");
}

bool is_kernel(std::string_view name) {
  return name.ends_with("linear_attn.conv1d.weight");
}

// Published checkpoints of Qwen 3.5 hold the convolution's kernel as [C, 1, taps], and the weights
// of norms minus one.
bool is_published_qwen3_5(const TensorMap& tensors, const Json& config) {
  return is_qwen3_5(config) && std::ranges::any_of(tensors, [](const auto& entry) {
           const auto& shape = entry.second.shape;
           return is_kernel(entry.first) && !shape.empty() && shape.back() != 1;
         });
}

// Norms of heads and of rows; the norm of linear attention's outputs is published unchanged.
bool is_norm_minus_one(std::string_view name) {
  constexpr std::array<std::string_view, 5> kEnds = {
      ".input_layernorm.weight",
      ".post_attention_layernorm.weight",
      "model.norm.weight",
      ".q_norm.weight",
      ".k_norm.weight",
  };
  const bool of_mtp = name.starts_with("mtp.") || name.find(".mtp.") != std::string_view::npos;
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); }) ||
         (of_mtp && (name.find(".pre_fc_norm_") != std::string_view::npos ||
                     name.ends_with("mtp.norm.weight")));
}

// Converts Qwen 3.5's values to those of MLX's models.
void make_whole(ModelTensor& tensor) {
  auto& shape = tensor.parts.front().shape;
  if (is_kernel(tensor.name) && shape.size() == 3 && shape[1] == 1) {
    std::swap(shape[1], shape[2]);  // [C, taps, 1] has the same bytes.
  } else if (is_norm_minus_one(tensor.name) && shape.size() == 1) {
    tensor.offset = 1.0F;
  }
}

std::string mlx_name(const std::string& name, const TensorMap& tensors, const Json& config) {
  constexpr std::string_view kNested = "model.language_model.";
  if (name.starts_with(kNested)) {
    return fmt::format("language_model.model.{}", name.substr(kNested.size()));
  }
  if (tensors.contains("model.language_model.embed_tokens.weight") &&
      name.starts_with("lm_head.")) {
    return fmt::format("language_model.{}", name);
  }
  // mlx-lm has no separate text model for this architecture.
  constexpr std::string_view kLanguage = "language_model.";
  const bool nests = json_string(config, "model_type", "") == "qwen3_5";
  const bool bare = tensors.contains("embed_tokens.weight");
  if (nests && !name.starts_with(kLanguage) && !name.starts_with("mtp.")) {
    return fmt::format("{}{}{}", kLanguage, bare ? "model." : "", name);
  }
  // A base model without a head has no prefix.
  return bare ? fmt::format("model.{}", name) : name;
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
  ModelTensor result{.name = name, .parts = {}, .stacked = true, .offset = 0.0F};
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
  const bool published = is_published_qwen3_5(tensors, config);
  for (const auto& [name, tensor] : tensors) {
    if (is_unused(name, config)) {
      continue;
    }
    const std::string renamed = mlx_name(name, tensors, config);
    if (const auto expert = expert_name(renamed)) {
      experts[expert->stack].emplace(expert->expert, tensor);
    } else {
      ModelTensor one{.name = renamed, .parts = {tensor}, .stacked = false, .offset = 0.0F};
      if (published) {
        make_whole(one);
      }
      one.keeps_dtype = is_qwen3_5(config) && renamed.ends_with("A_log");
      named.emplace(renamed, std::move(one));
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
