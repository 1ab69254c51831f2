// SPDX-License-Identifier: Apache-2.0
// Hunyuan, dense: Llama's layers with a norm over each head after the rotation. The base of its rope
// is raised once, by `alpha`, to reach longer contexts.
#include "saker/models/architecture.h"

#include <cmath>

namespace saker::models {
namespace {

// The factor of the base; 1 without an `alpha`.
double base_factor(const Json& json, int head_dim) {
  for (const auto* key : {"rope_scaling", "rope_parameters"}) {
    const auto rope = json.find(key);
    if (rope != json.end() && rope->is_object() && json_has(*rope, "alpha")) {
      return std::pow(read_positive(*rope, "alpha", 1.0), head_dim / (head_dim - 2.0));
    }
  }
  return 1.0;
}

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.context_length = 2048, .norm_eps = 1e-5});
  config.ropes.front().theta *= base_factor(json, config.head_dim);
  config.head_norms = json_bool(json, "use_qk_norm", true);
  config.norms_follow_rope = config.head_norms;
  config.attention_names.query_norm = "query_layernorm";
  config.attention_names.key_norm = "key_layernorm";
  return config;
}

}  // namespace

Architecture hunyuan_v1_dense() {
  return {read, pre_norm_layer};
}

}  // namespace saker::models
