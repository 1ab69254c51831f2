// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small configuration of each architecture.

#include "saker/base/json/json.h"

#include "tests/models/layer_sizes.h"

#include <string_view>

namespace saker::models {

inline bool is_olmo(std::string_view model_type) {
  return model_type.starts_with("olmo");
}

inline bool is_hybrid(std::string_view model_type) {
  return model_type.starts_with("qwen3_5");
}

inline Json small_config(std::string_view model_type) {
  Json config = {
      {"model_type", model_type},
      {"hidden_size", 32},
      {"num_hidden_layers", 2},
      {"intermediate_size", 64},
      {"num_attention_heads", 4},
      {"num_key_value_heads", 2},
      {"head_dim", 8},
      {"vocab_size", 50},
      {"max_position_embeddings", 256},
      {"tie_word_embeddings", false},
      {"query_pre_attn_scalar", 8},
      {"attn_logit_softcapping", 20.0},
      {"final_logit_softcapping", 10.0},
      {"num_experts", 4},
      {"num_experts_per_tok", 2},
      {"moe_intermediate_size", 32},
      {"full_attention_interval", 2},
      {"linear_num_key_heads", 2},
      {"linear_num_value_heads", 4},
      {"linear_key_head_dim", 6},
      {"linear_value_head_dim", 24},
      {"linear_conv_kernel_dim", 3},
      {"partial_rotary_factor", 1.0},
  };
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
  if (model_type == "ministral3" || model_type == "mistral3") {
    config["rope_parameters"] = {
        {"rope_type", "yarn"},
        {"factor", 4.0},
        {"original_max_position_embeddings", 16},
        {"llama_4_scaling_beta", 0.5},
    };
  }
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
