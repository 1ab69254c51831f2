// SPDX-License-Identifier: Apache-2.0
// Granite 4: Mamba-2 in most layers, attention in the others, mostly without rope; Granite's
// factors. Models with experts have a shared one beside them. Dense models have their MLP under its
// name, with gate and up joined; MLX's have a usual one.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/granite_factors.h"
#include "saker/models/mamba2_config.h"
#include "saker/models/moe_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::models {
namespace {

constexpr std::string_view kPublishedMlp = "shared_mlp";

// The width of a head, if it follows from the others.
std::int64_t default_head_dim(const Json& json, const DecoderConfig& config) {
  const auto expand = read_size(json, "mamba_expand", 2, 1 << 10);
  const auto heads = read_size(json, "mamba_n_heads", 128, 1 << 12);
  return expand * config.hidden / heads;
}

nn::Mamba2Options read_mamba(const Json& json, const DecoderConfig& config) {
  return read_mamba2(
      without_auto_head_dim(json, "mamba_d_head"),
      config,
      {.heads = "mamba_n_heads",
       .head_dim = "mamba_d_head",
       .state_dim = "mamba_d_state",
       .groups = "mamba_n_groups",
       .taps = "mamba_d_conv",
       .default_heads = 128,
       .default_head_dim = default_head_dim(json, config),
       .default_state_dim = 256}
  );
}

void read_positions(const Json& json, DecoderConfig& config) {
  const auto type = json_string(json, "position_embedding_type", "nope");
  require(
      type == "rope" || type == "nope",
      ErrorCode::kUnsupported,
      "[config] position_embedding_type is \"{}\", expected rope or nope",
      type
  );
  if (type == "nope") {
    set_rotating_layers(config, std::vector<bool>(config.layers.size(), false));
  }
}

constexpr nn::MlpNames kJoined{.joined = "input_linear", .down = "output_linear"};
constexpr nn::MoeNames kExperts{
    .router = "router.layer",
    .fused_inputs = "input_linear.weight",
    .fused_down = "output_linear.weight",
};

void read_mlps(const Json& json, DecoderConfig& config) {
  if (json_int(json, "num_local_experts", 8) == 0) {
    config.feed_forward = kPublishedMlp;
    config.joined_mlp = true;
    config.mlp_names = kJoined;
    config.mlx_feed_forward = "mlp";
    return;
  }
  config.moe = read_moe(
      json,
      config,
      {.experts = {"num_local_experts", 8},
       .chosen = {"num_experts_per_tok", 2},
       .width = {"intermediate_size", 11008}}
  );
  config.moe.routing.score = kernels::RouterScore::kSoftmaxOfChosen;
  config.moe.names = kExperts;
  config.moe.shared = {
      .intermediate = config.intermediate,
      .name = kPublishedMlp,
      .beside = true,
      .joined = true,
      .names = kJoined,
  };
  config.feed_forward = "block_sparse_moe";
  for (LayerConfig& layer : config.layers) {
    layer.experts = true;
  }
}

DecoderConfig read(const Json& json) {
  Json given = json;
  given["intermediate_size"] = read_size(json, "shared_intermediate_size", 1024, 1 << 24);
  auto config = read_decoder_config(given, {.context_length = 2048});
  set_granite_factors(config, json);
  read_mlps(json, config);
  read_positions(json, config);
  const auto* key = json_has(json, "layer_types") ? "layer_types" : "layers_block_type";
  const auto mixing = read_mixing(
      json,
      key,
      config.layers.size(),
      {{"mamba", TokenMixing::kMamba2},
       {"attention", TokenMixing::kAttention},
       {"linear_attention", TokenMixing::kMamba2},
       {"full_attention", TokenMixing::kAttention}}
  );
  for (std::size_t i = 0; i < mixing.size(); ++i) {
    config.layers[i].mixing = mixing[i];
  }
  if (std::ranges::find(mixing, TokenMixing::kMamba2) != mixing.end()) {
    config.mamba2 = read_mamba(json, config);
  }
  return config;
}

// Dense models of MLX, and shared experts in two parts.
void adjust(DecoderConfig& config, const nn::Weights& body) {
  if (config.joined_mlp && (body / "layers" / "0" / "mlp" / "down_proj").has("weight")) {
    config.feed_forward = config.mlx_feed_forward;
    config.joined_mlp = false;
    config.mlp_names = {};
  }
  nn::SharedExpertOptions& shared = config.moe.shared;
  if (shared.joined && (body / "layers" / "0" / shared.name / "gate_proj").has("weight")) {
    shared.joined = false;  // As files of llama.cpp have it.
    shared.names = {};
  }
}

// Dense models have a usual MLP there.
std::vector<std::string> mlx_names(std::string_view name, const Json& config) {
  const auto at = name.find(".shared_mlp.");
  if (at == std::string_view::npos || json_int(config, "num_local_experts", 8) != 0) {
    return {std::string(name)};
  }
  const std::string mlp = fmt::format("{}.mlp.", name.substr(0, at));
  const auto leaf = name.substr(name.rfind('.'));
  if (name.find(".output_linear.") != std::string_view::npos) {
    return {fmt::format("{}down_proj{}", mlp, leaf)};
  }
  return {fmt::format("{}gate_proj{}", mlp, leaf), fmt::format("{}up_proj{}", mlp, leaf)};
}

std::optional<kernels::WeightFormat> own_format(std::string_view module) {
  return module.ends_with("router.layer") ? std::optional(kEightBits) : std::nullopt;
}

bool is_kernel(std::string_view name) {
  return name.ends_with(".mamba.conv1d.weight");
}

using Kernels = KernelRules<is_kernel>;

}  // namespace

Architecture granitemoehybrid() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .adjust = adjust,
      .tensors =
          {.needs_sanitizing = Kernels::needs_sanitizing,
           .sanitized = Kernels::sanitized,
           .mlx_names = mlx_names,
           .experts = kExperts,
           .own_format = own_format},
  };
}

}  // namespace saker::models
