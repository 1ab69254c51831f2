// SPDX-License-Identifier: Apache-2.0
// Gemma 1: Llama's layers, but norm weights are stored as weight - 1, embeddings are scaled by
// sqrt(hidden), the gate is GELU, and the embedding is the head. Its first files say `hidden_act:
// gelu` and mean the tanh form.
#include "saker/models/architecture.h"

#include <cmath>

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  constexpr auto kDefault = kernels::Activation::kGeluTanh;
  auto config =
      read_decoder_config(json, {.head_dim = 256, .context_length = 8192, .activation = kDefault});
  if (config.activation == kernels::Activation::kGelu) {
    config.activation = kDefault;
  }
  refuse_flag(json, "use_bidirectional_attention");
  config.norm.weight_offset = 1.0F;
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  return config;
}

}  // namespace

Architecture gemma() {
  return {.read = read, .build_layer = pre_norm_layer, .always_tied = true};
}

}  // namespace saker::models
