// SPDX-License-Identifier: Apache-2.0
// Qwen 2 with experts: Qwen 2's layers, some with a mixture of experts for their MLP, beside an
// expert that all tokens share behind a gate.
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.kv_heads = 16});
  config.moe = read_moe(
      json,
      config,
      {.experts = {"num_experts", 60},
       .chosen = {"num_experts_per_tok", 4},
       .width = {"moe_intermediate_size", 1408}}
  );
  config.moe.routing.score = read_softmax(json, "norm_topk_prob", false);
  config.moe.shared = {
      .intermediate = read_optional_width(json, {"shared_expert_intermediate_size", 5632}),
      .name = "shared_expert",
      .gate = "shared_expert_gate",
  };
  set_sparse_layers(config, json);
  set_late_windows(config, json);
  return config;
}

}  // namespace

Architecture qwen2_moe() {
  return {read, pre_norm_layer};
}

}  // namespace saker::models
