// SPDX-License-Identifier: Apache-2.0
// Trinity (AFMoE): layers with norms before and after parts, norms of heads and a gate of its own
// projection. Three of four layers slide and rotate; the others have the whole past and do not
// rotate. From a layer on, each has a mixture of experts, whose router chooses by scores plus
// biases, and experts that all tokens share.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

#include <cmath>
#include <optional>
#include <string_view>

namespace saker::models {
namespace {

constexpr nn::MoeNames kNames{
    .router = "router.gate",
    .choice_bias = "expert_bias",
    .stacks = "experts",
};

bool slides(const Json& json, int layer) {
  return (layer + 1) % read_size(json, "global_attn_every_n_layers", 4, 1 << 20) != 0;
}

void add_experts(DecoderConfig& config, const Json& json) {
  config.moe = read_moe(
      json,
      config,
      {.experts = {"num_experts", 64},
       .chosen = {"num_experts_per_tok", 6},
       .width = {"moe_intermediate_size", 1408}}
  );
  read_grouped_sigmoid(json, config.moe);
  const auto score = json_string(json, "score_func", "sigmoid");
  require(
      score == "sigmoid" || score == "softmax",
      ErrorCode::kUnsupported,
      "[config] score_func is \"{}\", expected sigmoid or softmax",
      score
  );
  kernels::RouterOptions& routing = config.moe.routing;
  routing.score =
      score == "sigmoid" ? kernels::RouterScore::kSigmoid : kernels::RouterScore::kSoftmax;
  routing.normalized = json_bool(json, "route_norm", true);
  routing.scale = static_cast<float>(read_positive(json, "route_scale", 1.0));
  config.moe.names = kNames;
  config.moe.shared.intermediate = read_shared_width(json, {"num_shared_experts", 2}, config.moe);
  set_layers_after(config, json, {"num_dense_layers", 1});
}

DecoderConfig read(const Json& json) {
  auto config =
      read_decoder_config(json, {.head_dim = 128, .context_length = 16384, .norm_eps = 1e-5});
  config.names.outer_norms = {
      "input_layernorm", "post_attention_layernorm", "pre_mlp_layernorm", "post_mlp_layernorm"
  };
  config.head_norms = true;
  config.gate_projection = {.name = "gate_proj"};
  if (json_bool(json, "mup_enabled", false)) {
    config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  }
  const auto sliding = read_sliding_layers(json, static_cast<int>(config.layers.size()), slides);
  set_windows(config, sliding, read_window(json, 1024));
  set_rotating_layers(config, sliding);
  add_experts(config, json);
  return config;
}

std::optional<kernels::WeightFormat> own_format(std::string_view module) {
  return module.ends_with("router.gate") ? std::optional(kEightBits) : std::nullopt;
}

}  // namespace

Architecture afmoe() {
  return {
      .read = read,
      .build_layer = sandwich_norm_layer,
      .tensors = {.experts = kNames, .keeps_dtype = is_choice_bias, .own_format = own_format},
  };
}

}  // namespace saker::models
