// SPDX-License-Identifier: Apache-2.0
#pragma once

// MTP heads with random weights for the random models.

#include "saker/models/mtp.h"

#include "tests/models/random_model.h"
#include <fmt/format.h>

#include <memory>
#include <string>

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

inline std::unique_ptr<const MtpHead> random_mtp(
    const Json& config, const RandomModelOptions& options = {}, int layers = 1
) {
  return make_mtp_head(config, nn::Weights(random_mtp_tensors(config, options, layers), {}));
}

}  // namespace saker::models
