// SPDX-License-Identifier: Apache-2.0
// Gemma 3, text: Gemma 2's layers with RMS norm on q and k instead of soft caps. Five sliding
// layers per full one; each kind has its own rope (scaling applies to full layers only). Larger
// checkpoints have the text part in `text_config`. EmbeddingGemma's tokens see later ones too; its
// windows reach half of `sliding_window` to both sides.
#include "saker/base/error.h"
#include "saker/models/architecture.h"

#include <cmath>

namespace saker::models {
namespace {

constexpr std::size_t kFullRope = 0;
constexpr std::size_t kSlidingRope = 1;

// The embedding scale of a model that generates is rounded to bf16, for any dtype of the weights;
// vectors of texts are published for the exact one.
float rounded_scale(int hidden) {
  const auto scale = mx::array(std::sqrt(static_cast<float>(hidden)));
  return mx::astype(mx::astype(scale, mx::bfloat16), mx::float32).item<float>();
}

bool slides(const Json& json, int layer) {
  const auto pattern = json_int(json, "sliding_window_pattern", 6);
  require(
      pattern > 0,
      ErrorCode::kCorruptData,
      "[config] sliding_window_pattern is {}, expected a positive number",
      pattern
  );
  return (layer + 1) % pattern != 0;
}

DecoderConfig read(const Json& whole) {
  const auto json = text_config(whole, "gemma3");
  constexpr auto kDefault = kernels::Activation::kGeluTanh;
  auto config = read_decoder_config(
      json,
      {.heads = 8,
       .kv_heads = 4,
       .head_dim = 256,
       .vocab_size = 262208,
       .context_length = 131072,
       .activation = kDefault}
  );
  config.activation = read_activation(json, "hidden_activation", kDefault);
  config.bidirectional = json_bool(json, "use_bidirectional_attention", false);
  config.norm.weight_offset = 1.0F;
  config.head_norms = true;
  config.embedding_scale = config.bidirectional ? std::sqrt(static_cast<float>(config.hidden))
                                                : rounded_scale(config.hidden);
  config.attention_scale =
      static_cast<float>(1.0 / std::sqrt(read_positive(json, "query_pre_attn_scalar", 256.0)));
  config.attention_softcap = read_softcap(json, "attn_logit_softcapping", 0.0F);
  config.final_softcap = read_softcap(json, "final_logit_softcapping", 0.0F);
  config.head = HeadChoice::kByTensor;
  config.ropes = {
      nn::read_rope_options(json, {.default_theta = 1e6}),
      nn::read_rope_options(
          json,
          {.layer_type = "sliding_attention",
           .theta = "rope_local_base_freq",
           .default_theta = 1e4,
           .scaled = false}
      ),
  };
  for (const nn::RopeOptions& rope : config.ropes) {
    check_rotation(rope, config.head_dim);
  }
  const int layers = static_cast<int>(config.layers.size());
  int window = read_window(json, 4096);
  if (config.bidirectional) {
    config.embedding.pooling = Pooling::kMean;
    window = window > 0 ? window / 2 + 1 : 0;
  }
  set_windows(config, read_sliding_layers(json, layers, slides), window);
  for (auto& layer : config.layers) {
    layer.rope = layer.window > 0 ? kSlidingRope : kFullRope;
  }
  return config;
}

}  // namespace

Architecture gemma3() {
  return {read, sandwich_norm_layer};
}

}  // namespace saker::models
