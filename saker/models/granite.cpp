// SPDX-License-Identifier: Apache-2.0
// Granite 3 and 4, dense: Llama's layers with four factors: of the embedding, of scores (instead of the
// head's size), of what attention and MLP add to the stream, and a divisor of the logits. Granite 3
// MoE has a mixture of experts for each MLP.
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

#include <string_view>

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.context_length = 2048});
  const auto factor = [&](std::string_view key) {
    return static_cast<float>(read_positive(json, key, 1.0));
  };
  config.embedding_scale = factor("embedding_multiplier");
  config.attention_scale = factor("attention_multiplier");
  config.residual_scale = factor("residual_multiplier");
  config.logit_scale = 1.0F / factor("logits_scaling");
  return config;
}

constexpr nn::MoeNames kNames{
    .router = "router.layer",
    .fused_inputs = "input_linear.weight",
    .fused_down = "output_linear.weight",
};

DecoderConfig read_moe_layers(const Json& json) {
  auto config = read(json);
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
  for (LayerConfig& layer : config.layers) {
    layer.experts = true;
  }
  return config;
}

std::optional<kernels::WeightFormat> own_format(std::string_view module) {
  const bool is_wide = module.ends_with("block_sparse_moe.router.layer") ||
                       module.ends_with("self_attn.o_proj") || module.ends_with("mlp.down_proj") ||
                       module == "lm_head";
  return is_wide ? std::optional(kEightBits) : std::nullopt;
}

}  // namespace

Architecture granite() {
  return {read, pre_norm_layer};
}

Architecture granitemoe() {
  return {
      .read = read_moe_layers,
      .build_layer = pre_norm_layer,
      .tensors = {.experts = kNames, .own_format = own_format},
  };
}

}  // namespace saker::models
