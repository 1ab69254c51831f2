// SPDX-License-Identifier: Apache-2.0
// Laguna: Llama's layers with norms of heads, a number of heads for each layer, and a gate of each
// head's result. Layers that slide have a rope of their own. All layers but the first have a mixture
// of experts, whose router chooses by scores plus biases, and an expert that all tokens share. MLX's
// models have other names of the router.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::models {
namespace {

constexpr nn::MoeNames kNames{
    .choice_bias = "experts.e_score_correction_bias",
    .mlx_router = "gate.proj",
    .mlx_choice_bias = "gate.e_score_correction_bias",
};

// A flag, or the part of a head that has a gate of its own.
std::optional<nn::GateProjection> read_gate(const Json& json) {
  constexpr std::string_view kKey = "gating";
  const Json gating = json_has(json, kKey) ? *json.find(kKey) : Json(true);
  require(
      gating.is_boolean() || gating == "per-head" || gating == "per-element",
      ErrorCode::kUnsupported,
      "[config] {} is {}, expected true, false, \"per-head\" or \"per-element\"",
      kKey,
      describe_json(gating)
  );
  if (gating == false) {
    return std::nullopt;
  }
  return nn::GateProjection{
      .name = "g_proj",
      .by_head = gating != "per-element",
      .activation = kernels::Activation::kSoftplus,
  };
}

void read_heads_by_layer(DecoderConfig& config, const Json& json) {
  constexpr std::string_view kKey = "num_attention_heads_per_layer";
  if (!json_has(json, kKey)) {
    return;
  }
  const Json& counts = *json.find(kKey);
  require(
      counts.is_array() && counts.size() == config.layers.size(),
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected an array of num_hidden_layers {}",
      kKey,
      describe_json(counts),
      config.layers.size()
  );
  constexpr std::int64_t kMost = 1 << 16;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::int64_t heads = counts[i].is_number_integer() ? counts[i].get<std::int64_t>() : 0;
    require(
        heads > 0 && heads < kMost && heads % config.kv_heads == 0 &&
            heads * config.head_dim <= 1 << 24,
        ErrorCode::kCorruptData,
        "[config] {} has {}, expected a multiple of num_key_value_heads {}",
        kKey,
        describe_json(counts[i]),
        config.kv_heads
    );
    config.layers[i].heads = static_cast<int>(heads);
  }
}

void read_ropes(DecoderConfig& config, const Json& json) {
  const bool given = json_has(json, "rope_parameters");
  const double part = json_double(json, "partial_rotary_factor", 1.0);
  config.ropes = {
      nn::read_rope_options(
          json, {.default_theta = 5e5, .default_part = given ? part : 0.5, .partial = true}
      ),
      nn::read_rope_options(
          json, {.layer_type = "sliding_attention", .default_part = part, .partial = true}
      ),
  };
  for (const nn::RopeOptions& rope : config.ropes) {
    check_rotation(rope, config.head_dim);
  }
  const LayerPattern never = [](const Json&, int) { return false; };
  const auto sliding = read_sliding_layers(json, static_cast<int>(config.layers.size()), never);
  set_windows(config, sliding, read_window(json, 512));
  for (std::size_t i = 0; i < sliding.size(); ++i) {
    config.layers[i].rope = sliding[i] ? 1 : 0;
  }
}

void add_experts(DecoderConfig& config, const Json& json) {
  config.moe = read_moe(
      json,
      config,
      {.experts = {"num_experts", 256},
       .chosen = {"num_experts_per_tok", 8},
       .width = {"moe_intermediate_size", 512}}
  );
  refuse_flag(json, "moe_apply_router_weight_on_input");
  const auto score = json_string(json, "moe_router_score_func", "sigmoid");
  require(
      score == "sigmoid" || score == "sqrtsoftplus",
      ErrorCode::kUnsupported,
      "[config] moe_router_score_func is \"{}\", expected sigmoid or sqrtsoftplus",
      score
  );
  const double cap = json_double(json, "moe_router_logit_softcapping", 0.0);
  kernels::RouterOptions& routing = config.moe.routing;
  routing.score =
      score == "sigmoid" ? kernels::RouterScore::kSigmoid : kernels::RouterScore::kSqrtSoftplus;
  routing.softcap = cap == 0.0 ? 0.0F : read_softcap(json, "moe_router_logit_softcapping", 0.0F);
  routing.normalized = true;
  routing.epsilon = 1e-20F;
  routing.scale = static_cast<float>(read_positive(json, "moe_routed_scaling_factor", 1.0));
  config.moe.names = kNames;
  config.moe.shared = {
      .intermediate = read_optional_width(json, {"shared_expert_intermediate_size", 512}),
      .name = "shared_expert",
  };
  const auto sparse = read_sparse_types(json, config.layers.size());
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].experts = sparse ? (*sparse)[i] : i > 0;
  }
}

DecoderConfig read(const Json& json) {
  // Ropes come from an object for each kind of layer.
  auto config = read_decoder_config(
      json,
      {.heads = 48,
       .kv_heads = 8,
       .head_dim = 128,
       .context_length = 131072,
       .rope = {.partial = true}}
  );
  config.head_norms = true;
  config.gate_projection = read_gate(json);
  read_heads_by_layer(config, json);
  read_ropes(config, json);
  add_experts(config, json);
  return config;
}

std::optional<kernels::WeightFormat> own_format(std::string_view module) {
  return module.ends_with("mlp.gate.proj") ? std::optional(kEightBits) : std::nullopt;
}

// Without the names' change, which is of the router and its biases.
std::vector<std::string> mlx_names(std::string_view name, const Json&) {
  for (const auto& [published, own] :
       {std::pair(std::string_view("mlp.gate.weight"), std::string_view("mlp.gate.proj.weight")),
        std::pair(
            std::string_view("mlp.experts.e_score_correction_bias"),
            std::string_view("mlp.gate.e_score_correction_bias")
        )}) {
    if (name.ends_with(published)) {
      return {fmt::format("{}{}", name.substr(0, name.size() - published.size()), own)};
    }
  }
  return {std::string(name)};
}

}  // namespace

Architecture laguna() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .tensors =
          {.mlx_names = mlx_names,
           .experts = kNames,
           .keeps_dtype = is_choice_bias,
           .own_format = own_format},
  };
}

}  // namespace saker::models
