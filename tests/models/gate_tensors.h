// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small configurations of models whose attention has a gate, chunks or Mamba-2 beside it, and the
// tensors that only these have.

#include "saker/base/json/json.h"

#include "tests/models/hybrid_tensors.h"
#include "tests/models/random_experts.h"
#include "tests/nn/random_weights.h"
#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

namespace saker::models {

// How small configurations of these architectures differ from others.
inline Json gate_changes(std::string_view model_type) {
  if (model_type == "afmoe") {
    return {{"global_attn_every_n_layers", 2}, {"mup_enabled", true}};
  }
  if (model_type.starts_with("llama4")) {
    return {
        {"no_rope_layer_interval", 2},
        {"interleave_moe_layer_step", 2},
        {"attention_chunk_size", 9},
        {"floor_scale", 16}
    };
  }
  if (model_type != "falcon_h1") {
    return Json::object();
  }
  return {
      {"mamba_n_heads", 4},
      {"mamba_d_head", 8},
      {"mamba_d_ssm", 32},
      {"mamba_d_state", 6},
      {"mamba_n_groups", 2},
      {"mamba_d_conv", 3},
      {"mamba_rms_norm", true},
      {"embedding_multiplier", 3.0},
      {"key_multiplier", 0.5},
      {"lm_head_multiplier", 0.7},
      {"ssm_multipliers", {0.4, 0.5, 0.6, 0.7, 0.8}},
      {"ssm_in_multiplier", 1.5},
      {"ssm_out_multiplier", 0.6},
      {"attention_in_multiplier", 0.8},
      {"attention_out_multiplier", 0.9},
      {"mlp_multipliers", {0.8, 0.9}}
  };
}

// Tensors of a layer, by the adders of random_tensors().
struct GateTensors {
  nn::RandomWeights& random;
  const Json& config;
  const std::function<void(const std::string& path, int outputs, int inputs)>& add_linear;

  int size(std::string_view key) const { return static_cast<int>(json_int(config, key, 0)); }

  // `layer`: the layer's scope, with its dot.
  void add_to(const std::string& layer) const {
    const auto model_type = json_string(config, "model_type", "");
    const int hidden = size("hidden_size");
    const int heads = size("num_attention_heads");
    for (const auto* norm :
         {"pre_mlp_layernorm", "post_mlp_layernorm", "attention_layernorm", "feedforward_layernorm"
         }) {
      random.add_vector(fmt::format("{}{}.weight", layer, norm), hidden, 1.0F, 0.2F);
    }
    add_linear(layer + "self_attn.gate_proj", heads * size("head_dim"), hidden);
    add_linear(layer + "self_attn.g_proj", heads, hidden);
    for (const auto* factor : {"alpha_p", "alpha_n", "beta"}) {
      random.add_vector(fmt::format("{}mlp.act_fn.{}", layer, factor), 1, 0.5F, 0.2F);
    }
    random.add_vector(layer + "mlp.act_fn.eps", 1, -1e-6F, 0.0F);
    if (model_type == "afmoe" || model_type == "laguna" || model_type == "llama4") {
      add_experts(layer);
    } else if (model_type == "falcon_h1") {
      add_two_mixers(layer);
    }
  }

 private:
  void add_two_mixers(const std::string& layer) const {
    const int hidden = size("hidden_size");
    const int inner = size("intermediate_size");
    random.add_vector(layer + "pre_ff_layernorm.weight", hidden, 1.0F, 0.2F);
    add_linear(layer + "feed_forward.gate_proj", inner, hidden);
    add_linear(layer + "feed_forward.up_proj", inner, hidden);
    add_linear(layer + "feed_forward.down_proj", hidden, inner);
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
  }

  // A router with other names, and experts in a scope of their own.
  void add_experts(const std::string& layer) const {
    constexpr std::array kProjections{"gate_proj", "up_proj", "down_proj"};
    const int experts = size("num_experts");
    const int hidden = size("hidden_size");
    const RandomExperts mixture{random, hidden, size("moe_intermediate_size"), experts};
    mixture.add_linear(layer + "mlp.router.gate", experts, hidden);
    random.add_vector(layer + "mlp.expert_bias", experts, 0.0F, 0.2F);
    random.add_vector(layer + "mlp.experts.e_score_correction_bias", experts, 0.0F, 0.2F);
    const std::string scope = layer + "feed_forward.";
    mixture.add_linear(scope + "router", experts, hidden);
    mixture.add_mlp(scope, kProjections);
    mixture.add_mlp(scope + "shared_expert.", kProjections);
    mixture.add_single(scope, kProjections);
  }
};

}  // namespace saker::models
