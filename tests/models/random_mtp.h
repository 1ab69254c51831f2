// SPDX-License-Identifier: Apache-2.0
#pragma once

// MTP heads with random weights for the random models.

#include "saker/models/mtp.h"

#include "tests/models/random_model.h"
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace saker::models {

// Of a model of this configuration, under "mtp.".
inline nn::TensorMap random_mtp_tensors(
    const Json& config, const RandomModelOptions& options = {}, int layers = 1
) {
  const auto size = [&](std::string_view key) {
    return static_cast<int>(json_int(config, key, 0));
  };
  const int hidden = size("hidden_size");
  const int heads = size("num_attention_heads") * size("head_dim");
  const int kv_heads = size("num_key_value_heads") * size("head_dim");
  const bool gated = is_hybrid(json_string(config, "model_type", ""));
  nn::RandomWeights random(options.format, options.seed);
  const auto add_norm = [&](const std::string& path, int width) {
    random.add_vector(path + ".weight", width, 1.0F, 0.2F);
  };
  random.add_linear("mtp.fc", hidden, 2 * hidden);
  add_norm("mtp.pre_fc_norm_embedding", hidden);
  add_norm("mtp.pre_fc_norm_hidden", hidden);
  add_norm("mtp.norm", hidden);
  for (int i = 0; i < layers; ++i) {
    const auto layer = fmt::format("mtp.layers.{}.", i);
    add_norm(layer + "input_layernorm", hidden);
    add_norm(layer + "post_attention_layernorm", hidden);
    add_norm(layer + "self_attn.q_norm", size("head_dim"));
    add_norm(layer + "self_attn.k_norm", size("head_dim"));
    random.add_linear(layer + "self_attn.q_proj", gated ? 2 * heads : heads, hidden);
    random.add_linear(layer + "self_attn.k_proj", kv_heads, hidden);
    random.add_linear(layer + "self_attn.v_proj", kv_heads, hidden);
    random.add_linear(layer + "self_attn.o_proj", hidden, heads);
    random.add_linear(layer + "mlp.gate_proj", size("intermediate_size"), hidden);
    random.add_linear(layer + "mlp.up_proj", size("intermediate_size"), hidden);
    random.add_linear(layer + "mlp.down_proj", hidden, size("intermediate_size"));
  }
  return random.tensors();
}

inline bool has_next_layer(const Json& config) {
  const auto type = json_string(config, "model_type", "");
  return type.starts_with("glm4_moe") || type.starts_with("deepseek_v3");
}

// A model of this configuration and a head in the layer behind its last one.
inline nn::TensorMap random_next_layer_tensors(
    const Json& config, const RandomModelOptions& options = {}
) {
  const auto hidden = static_cast<int>(json_int(config, "hidden_size", 0));
  const auto layers = json_int(config, "num_hidden_layers", 0);
  Json larger = config;
  larger["num_hidden_layers"] = layers + 1;
  nn::TensorMap tensors = random_tensors(larger, options);
  const auto scope = fmt::format("model.layers.{}.", layers);
  nn::RandomWeights random(options.format, options.seed);
  random.add_linear(scope + "eh_proj", hidden, 2 * hidden);
  for (const auto* norm : {"enorm", "hnorm", "shared_head.norm"}) {
    random.add_vector(fmt::format("{}{}.weight", scope, norm), hidden, 1.0F, 0.2F);
  }
  nn::TensorMap own = random.tensors();
  tensors.merge(own);
  return tensors;
}

inline std::unique_ptr<const MtpHead> random_mtp(
    const Json& config, const RandomModelOptions& options = {}, int layers = 1
) {
  auto tensors = has_next_layer(config) ? random_next_layer_tensors(config, options)
                                        : random_mtp_tensors(config, options, layers);
  return make_mtp_head(config, nn::Weights(std::move(tensors), {}));
}

}  // namespace saker::models
