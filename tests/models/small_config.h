// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small configuration of each architecture.

#include "saker/base/json/json.h"

#include "tests/models/gate_tensors.h"
#include "tests/models/hybrid_tensors.h"
#include "tests/models/layer_sizes.h"

#include <string_view>

namespace saker::models {

// Norms of queries and keys over all heads together.
inline bool has_joined_norms(std::string_view model_type) {
  return model_type.starts_with("olmo") || model_type.starts_with("minimax");
}

inline bool is_hybrid(std::string_view model_type) {
  return model_type.starts_with("qwen3_5") || model_type == "qwen3_next";
}

// Under the names of every architecture.
inline void set_experts(Json& config, int experts, int chosen) {
  for (const auto* key :
       {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"}) {
    config[key] = experts;
  }
  for (const auto* key : {"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k"}) {
    config[key] = chosen;
  }
  for (const auto* key : {"n_group", "num_expert_group"}) {
    config[key] = experts % 2 == 0 && chosen <= experts / 2 ? 2 : 1;
  }
}

// Widths of MLPs. Those of experts are the others' in most architectures.
inline void set_widths(Json& config, int width, int expert_width) {
  const bool differ = config["model_type"] == "qwen3_moe";
  config["intermediate_size"] = width;
  config["moe_intermediate_size"] = differ ? expert_width : width;
  config["shared_expert_intermediate_size"] = width;
  config["intermediate_size_mlp"] = width;
}

// True for models whose rows of keys and values are latents.
inline bool has_latents(std::string_view model_type) {
  return model_type.starts_with("deepseek") || model_type.starts_with("kimi") ||
         model_type == "glm4_moe_lite" || model_type == "mistral4" ||
         model_type == "bailing_hybrid";
}

inline Json small_config(std::string_view model_type) {
  Json config = {
      {"model_type", model_type},
      {"hidden_size", 32},
      {"num_hidden_layers", 2},
      {"num_attention_heads", 4},
      {"num_key_value_heads", 2},
      {"head_dim", 8},
      {"vocab_size", 50},
      {"max_position_embeddings", 256},
      {"tie_word_embeddings", false},
      {"query_pre_attn_scalar", 8},
      {"attn_logit_softcapping", 20.0},
      {"final_logit_softcapping", 10.0},
      {"num_shared_experts", 1},
      {"full_attention_interval", 2},
      {"linear_num_key_heads", 2},
      {"linear_num_value_heads", 4},
      {"linear_key_head_dim", 6},
      {"linear_value_head_dim", 24},
      {"linear_conv_kernel_dim", 3},
      {"partial_rotary_factor", 1.0},
  };
  set_experts(config, 4, 2);
  set_widths(config, 64, 32);
  config.update({{"n_shared_experts", 1}, {"moe_num_shared_experts", 1}});
  if (model_type == "generic") {
    for (const auto* key :
         {"query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"}) {
      config.erase(key);
    }
    config["layer_types"] = {"full_attention", "full_attention"};
  }
  if (model_type == "gpt_oss") {
    config["num_local_experts"] = config["num_experts"];
  }
  if (model_type == "granite") {
    config.update(
        {{"embedding_multiplier", 3.0},
         {"attention_multiplier", 0.3},
         {"residual_multiplier", 0.5},
         {"logits_scaling", 2.0}}
    );
  }
  if (model_type == "ministral3" || model_type == "mistral3" || model_type == "mistral4") {
    config["rope_parameters"] = {
        {"rope_type", "yarn"},
        {"factor", 4.0},
        {"original_max_position_embeddings", 16},
        {"llama_4_scaling_beta", 0.5},
    };
  }
  if (has_latents(model_type)) {
    config["n_group"] = config["num_expert_group"] = 1;
    config.update(
        {{"q_lora_rank", 20},
         {"kv_lora_rank", 24},
         {"qk_nope_head_dim", 8},
         {"qk_rope_head_dim", 4},
         {"v_head_dim", 12},
         {"first_k_dense_replace", 1},
         {"n_routed_experts", 4},
         {"n_shared_experts", 1},
         {"topk_group", 1}}
    );
  }
  config.update(gate_changes(model_type));
  config.update(hybrid_changes(model_type));
  if (is_gemma4(model_type)) {
    config.update(
        {{"num_hidden_layers", 6},
         {"sliding_window_pattern", 2},
         {"num_kv_shared_layers", 2},
         {"use_double_wide_mlp", true},
         {"attention_k_eq_v", true},
         {"num_global_key_value_heads", 1},
         {"global_head_dim", 16},
         {"hidden_size_per_layer_input", 12}}
    );
  }
  return config;
}

}  // namespace saker::models
