// SPDX-License-Identifier: Apache-2.0
// MiniMax M2: Llama's layers with a mixture of experts for each MLP, whose sigmoid router chooses by
// scores plus biases. Queries have a norm over all heads together, and keys too; heads rotate in
// part.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

namespace saker::models {
namespace {

constexpr nn::MoeNames kNames{
    .choice_bias = "e_score_correction_bias",
    .single = {.gate = "w1", .up = "w3", .down = "w2"},
};

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(
      json,
      {.kv_heads = 8,
       .head_dim = 128,
       .context_length = 196608,
       .rope = {.default_theta = 5e6, .partial = true}}
  );
  if (json_has(json, "rotary_dim")) {
    const auto rotated = json_int_in(json, "rotary_dim", 2, config.head_dim);
    config.ropes.front().part = static_cast<double>(rotated) / config.head_dim;
    check_rotation(config.ropes.front(), config.head_dim);
  }
  config.head_norms = true;
  config.norms_join_heads = true;
  config.moe = read_moe(
      json,
      config,
      {.experts = {"num_local_experts", 256},
       .chosen = {"num_experts_per_tok", 8},
       .width = {"intermediate_size"}}
  );
  config.moe.routing.score = kernels::RouterScore::kSigmoid;
  config.moe.routing.normalized = true;
  config.moe.routing.epsilon = 1e-20F;
  config.moe.names = kNames;
  config.feed_forward = "block_sparse_moe";
  for (LayerConfig& layer : config.layers) {
    layer.experts = true;
  }
  return config;
}

std::optional<kernels::WeightFormat> own_format(std::string_view module) {
  return module.ends_with("block_sparse_moe.gate") ? std::optional(kEightBits) : std::nullopt;
}

}  // namespace

Architecture minimax_m2() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .tensors =
          {.is_unread = is_behind_layers,
           .experts = kNames,
           .keeps_dtype = is_choice_bias,
           .own_format = own_format},
  };
}

}  // namespace saker::models
