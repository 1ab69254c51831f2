// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small configurations of models with layers that keep no rows, and those layers' tensors.

#include "saker/base/json/json.h"

#include "tests/models/kda_tensors.h"
#include "tests/nn/random_weights.h"
#include <fmt/format.h>

#include <array>
#include <functional>
#include <string>
#include <string_view>

namespace saker::models {

// How small configurations of these architectures differ from others.
inline Json hybrid_changes(std::string_view model_type) {
  if (model_type.starts_with("lfm2")) {
    return {
        {"num_dense_layers", 1},
        {"layer_types", {"conv", "full_attention", "conv", "conv"}},
        {"num_hidden_layers", 4},
        {"block_auto_adjust_ff_dim", false},
        {"conv_L_cache", 3}
    };
  }
  if (model_type == "granitemoehybrid") {
    return {
        {"layer_types", {"mamba", "attention", "mamba", "mamba"}},
        {"num_hidden_layers", 4},
        {"num_local_experts", 0},
        {"shared_intermediate_size", 64},
        {"mamba_n_heads", 4},
        {"mamba_d_head", 8},
        {"mamba_d_state", 6},
        {"mamba_n_groups", 2},
        {"mamba_d_conv", 3}
    };
  }
  if (model_type == "nemotron_h") {
    return {
        {"hybrid_override_pattern", "M*-E"},
        {"moe_shared_expert_intermediate_size", 32},
        {"moe_latent_size", 32},
        {"num_hidden_layers", 4},
        {"mamba_num_heads", 4},
        {"mamba_head_dim", 8},
        {"ssm_state_size", 6},
        {"n_groups", 2},
        {"conv_kernel", 3}
    };
  }
  return kda_changes(model_type);
}

// Tensors of a layer of Mamba-2, by the adders of random_tensors(). `sizes`: heads, a head's size,
// groups, the state's size and taps.
inline void add_mamba2(
    nn::RandomWeights& random,
    const std::string& scope,
    int hidden,
    const std::array<int, 5>& sizes,
    const std::function<void(const std::string& path, int outputs, int inputs)>& add_linear
) {
  const auto [heads, head_dim, groups, state_dim, taps] = sizes;
  const int outputs = heads * head_dim;
  const int channels = outputs + 2 * groups * state_dim;
  add_linear(scope + "in_proj", outputs + channels + heads, hidden);
  add_linear(scope + "out_proj", hidden, outputs);
  random.add_tensor(scope + "conv1d.weight", {channels, taps, 1});
  random.add_vector(scope + "conv1d.bias", channels, 0.0F, 0.2F);
  random.add_vector(scope + "A_log", heads, 0.0F, 0.5F);
  random.add_vector(scope + "D", heads, 1.0F, 0.5F);
  random.add_vector(scope + "dt_bias", heads, 0.0F, 0.5F);
  random.add_vector(scope + "norm.weight", outputs, 1.0F, 0.2F);
}

// As above, of experts that read rows of their own size.
inline void add_single_experts(
    nn::RandomWeights& random,
    const Json& config,
    const std::string& scope,
    const std::function<void(const std::string& path, int outputs, int inputs)>& add_linear
) {
  const auto size = [&](std::string_view key) {
    return static_cast<int>(json_int(config, key, 0));
  };
  const int hidden = size("hidden_size");
  const int latent = size("moe_latent_size");
  const int experts = size("n_routed_experts");
  const int shared = size("moe_shared_expert_intermediate_size");
  random.add_linear(scope + "gate", experts, hidden);
  random.add_vector(scope + "gate.e_score_correction_bias", experts, 0.0F, 0.3F);
  add_linear(scope + "fc1_latent_proj", latent, hidden);
  add_linear(scope + "fc2_latent_proj", hidden, latent);
  add_linear(scope + "shared_experts.up_proj", shared, hidden);
  add_linear(scope + "shared_experts.down_proj", hidden, shared);
  for (int expert = 0; expert < experts; ++expert) {
    const auto own = fmt::format("{}experts.{}.", scope, expert);
    random.add_linear(own + "up_proj", size("moe_intermediate_size"), latent);
    random.add_linear(own + "down_proj", latent, size("moe_intermediate_size"));
  }
}

// As above, of the layers of architectures that have names of their own for most of them.
inline void add_hybrid_layer(
    nn::RandomWeights& random,
    const Json& config,
    int index,
    const std::function<void(const std::string& path, int outputs, int inputs)>& add_linear
) {
  const auto size = [&](std::string_view key) {
    return static_cast<int>(json_int(config, key, 0));
  };
  const auto model_type = json_string(config, "model_type", "");
  const auto layer = fmt::format("model.layers.{}.", index);
  const int hidden = size("hidden_size");
  const int inner = size("intermediate_size");
  if (model_type.starts_with("lfm2")) {
    for (const auto* norm : {"operator_norm", "ffn_norm"}) {
      random.add_vector(layer + norm + ".weight", hidden, 1.0F, 0.2F);
    }
    for (const auto* norm : {"q_layernorm", "k_layernorm"}) {
      random.add_vector(layer + "self_attn." + norm + ".weight", size("head_dim"), 1.0F, 0.2F);
    }
    add_linear(
        layer + "self_attn.out_proj", hidden, size("num_attention_heads") * size("head_dim")
    );
    add_linear(layer + "conv.in_proj", 3 * hidden, hidden);
    add_linear(layer + "conv.out_proj", hidden, hidden);
    random.add_tensor(layer + "conv.conv.weight", {hidden, size("conv_L_cache"), 1});
    add_linear(layer + "feed_forward.w1", inner, hidden);
    add_linear(layer + "feed_forward.w3", inner, hidden);
    add_linear(layer + "feed_forward.w2", hidden, inner);
    const int width = size("moe_intermediate_size");
    random.add_linear(layer + "feed_forward.gate", size("num_experts"), hidden);
    random.add_vector(layer + "feed_forward.expert_bias", size("num_experts"), 0.0F, 0.3F);
    for (int expert = 0; expert < size("num_experts"); ++expert) {
      const auto scope = fmt::format("{}feed_forward.experts.{}.", layer, expert);
      random.add_linear(scope + "w1", width, hidden);
      random.add_linear(scope + "w3", width, hidden);
      random.add_linear(scope + "w2", hidden, width);
    }
  } else if (model_type == "granitemoehybrid") {
    add_linear(layer + "shared_mlp.input_linear", 2 * inner, hidden);
    add_linear(layer + "shared_mlp.output_linear", hidden, inner);
    add_mamba2(
        random,
        layer + "mamba.",
        hidden,
        {size("mamba_n_heads"),
         size("mamba_d_head"),
         size("mamba_n_groups"),
         size("mamba_d_state"),
         size("mamba_d_conv")},
        add_linear
    );
  } else if (model_type == "nemotron_h") {
    const int heads = size("num_attention_heads") * size("head_dim");
    const int kv_heads = size("num_key_value_heads") * size("head_dim");
    random.add_vector(layer + "norm.weight", hidden, 1.0F, 0.2F);
    add_mamba2(
        random,
        layer + "mixer.",
        hidden,
        {size("mamba_num_heads"),
         size("mamba_head_dim"),
         size("n_groups"),
         size("ssm_state_size"),
         size("conv_kernel")},
        add_linear
    );
    add_linear(layer + "mixer.q_proj", heads, hidden);
    add_linear(layer + "mixer.k_proj", kv_heads, hidden);
    add_linear(layer + "mixer.v_proj", kv_heads, hidden);
    add_linear(layer + "mixer.o_proj", hidden, heads);
    add_linear(layer + "mixer.up_proj", inner, hidden);
    add_linear(layer + "mixer.down_proj", hidden, inner);
    add_single_experts(random, config, layer + "mixer.", add_linear);
  }
  add_kda_layer(random, config, index, add_linear);
}

}  // namespace saker::models
