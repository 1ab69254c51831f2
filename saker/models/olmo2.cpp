// SPDX-License-Identifier: Apache-2.0
// OLMo 2: attention and MLP read the stream and have a norm on their output. Queries have a norm over
// all heads together, and keys too. OLMo 3 also slides in three of four layers; the scaling of its rope
// is of full layers only.
#include "saker/models/architecture.h"

namespace saker::models {
namespace {

DecoderConfig read_layers(const Json& json, const ConfigDefaults& defaults) {
  auto config = read_decoder_config(json, defaults);
  config.head_norms = true;
  config.norms_join_heads = true;
  return config;
}

DecoderConfig read(const Json& json) {
  return read_layers(json, {.context_length = 2048, .norm_eps = 1e-5});
}

DecoderConfig read_olmo3(const Json& json) {
  constexpr double kTheta = 5e5;
  auto config = read_layers(
      json, {.context_length = 2048, .rope = {.default_theta = kTheta}, .norm_eps = 1e-5}
  );
  config.ropes.push_back(nn::read_rope_options(
      json, {.layer_type = "sliding_attention", .default_theta = kTheta, .scaled = false}
  ));
  check_rotation(config.ropes.back(), config.head_dim);
  const LayerPattern slides = [](const Json&, int layer) { return (layer + 1) % 4 != 0; };
  const auto sliding = read_sliding_layers(json, static_cast<int>(config.layers.size()), slides);
  set_windows(config, sliding, read_window(json, 4096));
  for (LayerConfig& layer : config.layers) {
    layer.rope = layer.window > 0 ? 1 : 0;
  }
  return config;
}

}  // namespace

Architecture olmo2() {
  return {read, post_norm_layer};
}

Architecture olmo3() {
  return {read_olmo3, post_norm_layer};
}

}  // namespace saker::models
