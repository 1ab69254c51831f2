// SPDX-License-Identifier: Apache-2.0
// OLMoE: Llama's layers with a mixture of experts for each MLP. Queries have a norm over all heads
// together, and keys too.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.context_length = 4096, .norm_eps = 1e-5});
  config.head_norms = true;
  config.norms_join_heads = true;
  require(
      !json_has(json, "clip_qkv"),
      ErrorCode::kUnsupported,
      "[config] clip_qkv is {}, only null can be run",
      json_has(json, "clip_qkv") ? describe_json(json["clip_qkv"]) : ""
  );
  config.moe = read_moe(
      json,
      config,
      {.experts = {"num_experts", 64},
       .chosen = {"num_experts_per_tok", 8},
       .width = {"intermediate_size"}}
  );
  config.moe.routing.score = read_softmax(json, "norm_topk_prob", false);
  for (LayerConfig& layer : config.layers) {
    layer.experts = true;
  }
  return config;
}

}  // namespace

Architecture olmoe() {
  return {read, pre_norm_layer};
}

}  // namespace saker::models
