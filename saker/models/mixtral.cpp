// SPDX-License-Identifier: Apache-2.0
// Mixtral: Llama's layers with a mixture of experts for each MLP. A window is of all layers.
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

namespace saker::models {
namespace {

constexpr nn::MoeNames kNames{.single = {.gate = "w1", .up = "w3", .down = "w2"}};

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(
      json,
      {.kv_heads = 8, .context_length = 131072, .rope = {.default_theta = 1e6}, .norm_eps = 1e-5}
  );
  config.moe = read_moe(
      json,
      config,
      {.experts = {"num_local_experts", 8},
       .chosen = {"num_experts_per_tok", 2},
       .width = {"intermediate_size"}}
  );
  config.moe.routing.score = kernels::RouterScore::kSoftmaxOfChosen;
  config.moe.names = kNames;
  config.feed_forward = "block_sparse_moe";
  const int window = read_window(json, 0);
  for (LayerConfig& layer : config.layers) {
    layer.experts = true;
    layer.window = window;
  }
  return config;
}

}  // namespace

Architecture mixtral() {
  return {.read = read, .build_layer = pre_norm_layer, .tensors = {.experts = kNames}};
}

}  // namespace saker::models
