// SPDX-License-Identifier: Apache-2.0
// Command R7B and A: attention and MLP read the same rows, normed by a LayerNorm. Three of four layers
// slide and rotate neighbouring elements; the others have the whole past and do not rotate.
#include "saker/models/architecture.h"

namespace saker::models {
namespace {

bool slides(const Json& json, int layer) {
  return (layer + 1) % read_size(json, "sliding_window_pattern", 4, 1 << 24) != 0;
}

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(
      json, {.context_length = 8192, .norm_eps = 1e-5, .norm_eps_key = "layer_norm_eps"}
  );
  config.norm.kind = kernels::NormKind::kLayer;
  config.logit_scale = static_cast<float>(read_positive(json, "logit_scale", 0.0625));
  config.ropes.front().pairs = kernels::RopePairs::kNeighbours;
  refuse_flag(json, "use_qk_norm");
  const auto sliding = read_sliding_layers(json, static_cast<int>(config.layers.size()), slides);
  set_windows(config, sliding, read_window(json, 4096));
  set_rotating_layers(config, sliding);
  return config;
}

}  // namespace

Architecture cohere2() {
  return {read, parallel_layer};
}

}  // namespace saker::models
