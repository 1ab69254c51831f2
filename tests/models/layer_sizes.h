// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sizes of a random model's layers, where they are not the same in all of them.

#include "saker/base/json/json.h"

#include <string_view>

namespace saker::models {

inline bool is_gemma4(std::string_view model_type) {
  return model_type.starts_with("gemma4");
}

struct LayerSizes {
  int head_dim;
  int kv_heads;
  int intermediate;
};

// REQUIRES: layers that slide by pattern, the last being a full one.
inline LayerSizes layer_sizes(const Json& config, int layer) {
  const auto size = [&](std::string_view key) {
    return static_cast<int>(json_int(config, key, 0));
  };
  LayerSizes sizes{size("head_dim"), size("num_key_value_heads"), size("intermediate_size")};
  if (!is_gemma4(json_string(config, "model_type", ""))) {
    return sizes;
  }
  const int layers = size("num_hidden_layers");
  if ((layer + 1) % size("sliding_window_pattern") == 0 || layer + 1 == layers) {
    sizes.head_dim = size("global_head_dim");
    const bool own = json_bool(config, "attention_k_eq_v", false);
    sizes.kv_heads = own ? size("num_global_key_value_heads") : sizes.kv_heads;
  }
  if (layer >= layers - size("num_kv_shared_layers")) {
    sizes.intermediate *= json_bool(config, "use_double_wide_mlp", false) ? 2 : 1;
  }
  return sizes;
}

}  // namespace saker::models
