// SPDX-License-Identifier: Apache-2.0
// Gemma 2: norms before and after attention and MLP, soft-capped scores and logits, and a fixed
// query scale. Every other layer has a sliding window, beginning with the first.
#include "saker/models/architecture.h"

#include <cmath>

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  constexpr auto kDefault = kernels::Activation::kGeluTanh;
  auto config =
      read_decoder_config(json, {.head_dim = 256, .context_length = 8192, .activation = kDefault});
  config.activation = read_activation(json, "hidden_activation", kDefault);
  refuse_flag(json, "use_bidirectional_attention");
  config.norm.weight_offset = 1.0F;
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  config.attention_scale =
      static_cast<float>(1.0 / std::sqrt(read_positive(json, "query_pre_attn_scalar", 256.0)));
  config.attention_softcap = read_softcap(json, "attn_logit_softcapping", 50.0F);
  config.final_softcap = read_softcap(json, "final_logit_softcapping", 30.0F);
  const int layers = static_cast<int>(config.layers.size());
  const int window = read_window(json, 4096);
  const auto sliding = read_sliding_layers(json, layers, [](const Json& source, int layer) {
    return read_window(source, 4096) > 0 && layer % 2 == 0;
  });
  set_windows(config, sliding, window);
  return config;
}

}  // namespace

Architecture gemma2() {
  return {.read = read, .build_layer = sandwich_norm_layer, .always_tied = true};
}

}  // namespace saker::models
