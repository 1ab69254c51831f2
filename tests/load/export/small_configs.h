// SPDX-License-Identifier: Apache-2.0
#pragma once

// Configurations of small models, one for each architecture that GGUF files are written for.

#include "saker/base/json/json.h"

#include <string>
#include <utility>
#include <vector>

namespace saker::load::gguf {

// Four heads of 16, two of them for keys and values.
inline Json small_config(const std::string& model_type, const Json& more = Json::object()) {
  Json config = {
      {"model_type", model_type},
      {"hidden_size", 64},
      {"intermediate_size", 96},
      {"num_hidden_layers", 6},
      {"num_attention_heads", 4},
      {"num_key_value_heads", 2},
      {"head_dim", 16},
      {"vocab_size", 40},
      {"max_position_embeddings", 512},
      {"rms_norm_eps", 1e-5},
      {"rope_theta", 50000.0},
      {"tie_word_embeddings", false},
  };
  for (const auto& [key, value] : more.items()) {
    config[key] = value;
  }
  return config;
}

inline Json small_gemma2(const Json& more = Json::object()) {
  Json config = small_config("gemma2", {{"query_pre_attn_scalar", 16}, {"sliding_window", 128}});
  config.update(more);
  return config;
}

inline Json small_gemma3(const Json& more = Json::object()) {
  Json config = small_config(
      "gemma3_text",
      {{"query_pre_attn_scalar", 16},
       {"sliding_window", 128},
       {"sliding_window_pattern", 6},
       {"rope_local_base_freq", 20000.0}}
  );
  config.update(more);
  return config;
}

inline Json small_moe(const Json& more = Json::object()) {
  Json config = small_config(
      "qwen3_moe",
      {{"num_experts", 8},
       {"num_experts_per_tok", 2},
       {"moe_intermediate_size", 32},
       {"norm_topk_prob", true}}
  );
  config.update(more);
  return config;
}

// Two key heads of 8, two value heads of 10 for each.
inline Json small_qwen35(const Json& more = Json::object()) {
  Json config = small_config(
      "qwen3_5_text",
      {{"partial_rotary_factor", 0.25},
       {"full_attention_interval", 3},
       {"linear_num_key_heads", 2},
       {"linear_num_value_heads", 4},
       {"linear_key_head_dim", 8},
       {"linear_value_head_dim", 10},
       {"linear_conv_kernel_dim", 4}}
  );
  config.update(more);
  return config;
}

inline std::vector<std::pair<std::string, Json>> small_configs() {
  return {
      {"llama", small_config("llama")},
      {"qwen2", small_config("qwen2")},
      {"qwen3", small_config("qwen3")},
      {"qwen3moe", small_moe()},
      {"qwen35", small_qwen35()},
      {"gemma", small_config("gemma")},
      {"gemma2", small_gemma2()},
      {"gemma3", small_gemma3()},
      {"gemma-embedding", small_gemma3({{"use_bidirectional_attention", true}})},
  };
}

}  // namespace saker::load::gguf
