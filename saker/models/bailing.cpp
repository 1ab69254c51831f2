// SPDX-License-Identifier: Apache-2.0
// Ling and Ring. Versions 1 and 2 are Llama's layers with q, k and v in one tensor and, from a layer
// on, a mixture of experts for each MLP, whose router chooses by softmax or by sigmoids plus biases,
// beside an expert that all tokens share. Version 3 has Kimi Delta Attention in most layers. The
// last layer of a group has latent attention whose heads are gated. Layers behind the last predict
// more tokens; they are not read.
#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/models/architecture.h"
#include "saker/models/latent_config.h"
#include "saker/models/mamba2_config.h"
#include "saker/models/moe_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::models {
namespace {

constexpr std::string_view kRouter = "mlp.gate";
constexpr std::string_view kMlxRouter = "mlp.gate.gate_proj";
constexpr std::string_view kChoiceBias = "gate.expert_bias";

void rename_parts(DecoderConfig& config) {
  config.names.attention = "attention";
  config.names.kda = config.names.attention;
}

void add_experts(DecoderConfig& config, const Json& json, std::string_view default_score) {
  config.moe = read_moe(json, config, {});
  nn::MoeOptions& moe = config.moe;
  read_grouped_sigmoid(json, moe);
  const auto score = json_string(json, "score_function", default_score);
  require(
      score == "softmax" || score == "sigmoid",
      ErrorCode::kUnsupported,
      "[config] score_function is \"{}\", expected \"softmax\" or \"sigmoid\"",
      score
  );
  moe.routing.score =
      score == "sigmoid" ? kernels::RouterScore::kSigmoid : kernels::RouterScore::kSoftmax;
  if (json_bool(json, "moe_router_enable_shared_expert", true)) {
    nn::MoeOptions one = moe;
    const int own = read_optional_width(json, {"moe_shared_expert_intermediate_size"});
    one.intermediate = own > 0 ? own : moe.intermediate;
    moe.shared.intermediate = read_shared_width(json, {"num_shared_experts", 1}, one);
  }
  set_layers_after(config, json, {"first_k_dense_replace", 0});
}

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.rope = {.partial = true}});
  if (json_has(json, "rotary_dim")) {
    const auto rotated = json_int_in(json, "rotary_dim", 2, config.head_dim);
    config.ropes.front().part = static_cast<double>(rotated) / config.head_dim;
    check_rotation(config.ropes.front(), config.head_dim);
  }
  refuse_flag(json, "norm_head");
  rename_parts(config);
  config.head_norms = json_bool(json, "use_qk_norm", false);
  config.attention_names = {
      .query_norm = "query_layernorm",
      .key_norm = "key_layernorm",
      .output = "dense",
      .joined = "query_key_value",
  };
  config.joined_attention = true;
  if (!json_has(json, "num_experts")) {
    return config;
  }
  add_experts(config, json, "softmax");
  if (json_bool(json, "moe_router_enable_expert_bias", false)) {
    config.moe.names.choice_bias = kChoiceBias;
    config.moe.names.mlx_choice_bias = kChoiceBias;
  }
  config.moe.names.mlx_router = "gate.gate_proj";
  return config;
}

std::vector<std::string> mlx_names(std::string_view name, const Json&) {
  for (const std::string_view leaf : {".weight", ".bias"}) {
    const std::string router = fmt::format(".{}{}", kRouter, leaf);
    if (name.ends_with(router)) {
      return {fmt::format("{}.{}{}", name.substr(0, name.size() - router.size()), kMlxRouter, leaf)
      };
    }
  }
  return {std::string(name)};
}

std::optional<kernels::WeightFormat> own_format(std::string_view module) {
  return module.ends_with(kMlxRouter) ? std::optional(kEightBits) : std::nullopt;
}

// Version 3.

nn::KdaOptions read_kda(const Json& json, const DecoderConfig& config) {
  constexpr std::int64_t kMaxDim = 1 << 11;
  constexpr std::int64_t kMaxMemory = 1 << 24;  // Numbers in a layer's state.
  nn::KdaOptions options{.hidden = config.hidden, .shape = {}, .norm = config.norm};
  options.whole_gates = true;
  kernels::KdaShape& shape = options.shape;
  shape.heads = config.heads;
  shape.head_dim = static_cast<int>(read_size(json, "head_dim", 128, kMaxDim));
  shape.taps =
      static_cast<int>(read_size(json, "short_conv_kernel_size", 4, kernels::kMaxConvolutionTaps));
  require(
      shape.taps > 1,
      ErrorCode::kUnsupported,
      "[config] short_conv_kernel_size is {}, expected at least 2",
      shape.taps
  );
  require(
      std::int64_t{shape.heads} * shape.head_dim * shape.head_dim <= kMaxMemory,
      ErrorCode::kUnsupported,
      "[config] num_attention_heads {} times head_dim {} times itself is above {}",
      shape.heads,
      shape.head_dim,
      kMaxMemory
  );
  const double bound = json_double(json, "kda_lower_bound", -5.0);
  require(
      std::isfinite(bound) && bound < -1e-6 && bound > -1e6,
      ErrorCode::kCorruptData,
      "[config] kda_lower_bound is {}, expected a negative number",
      bound
  );
  options.lower_bound = json_bool(json, "kda_safe_gate", true) ? static_cast<float>(bound) : 0.0F;
  return options;
}

// All layers but the last one of each group and those behind the last group.
bool is_linear(const Json& json, int layer) {
  const auto group = read_size(json, "layer_group_size", 6, 1 << 20);
  const auto layers = json_int_in(json, "num_hidden_layers", 1, 1 << 20);
  return (layer + 1) % group != 0 && layer < layers / group * group;
}

DecoderConfig read_hybrid(const Json& whole) {
  require(
      !json_has(whole, "group_norm_size"),
      ErrorCode::kUnsupported,
      "[config] group_norm_size is set, expected Ling 3 with Kimi Delta Attention"
  );
  require(
      json_bool(whole, "no_kda_lora", true),
      ErrorCode::kUnsupported,
      "[config] no_kda_lora is false, only true can be run"
  );
  const Json defaults{
      {"kv_lora_rank", 512},
      {"qk_nope_head_dim", 128},
      {"qk_rope_head_dim", 64},
      {"v_head_dim", 128},
      {"first_k_dense_replace", 2},
      {"routed_scaling_factor", 2.5},
      {"n_group", 8},
      {"topk_group", 4},
      {"num_experts", 512},
      {"num_experts_per_tok", 8},
      {"moe_intermediate_size", 768},
  };
  Json json = whole;
  for (const auto& [key, value] : defaults.items()) {
    if (!json_has(json, key)) {
      json[key] = value;
    }
  }
  set_rotating_dim(json);
  auto config = read_decoder_config(
      json, {.context_length = 262144, .rope = {.default_theta = 6e6}, .norm_eps = 1e-6}
  );
  rename_parts(config);
  const bool neighbours = json_bool(json, "rope_interleave", true);
  config.ropes.front().pairs =
      neighbours ? kernels::RopePairs::kNeighbours : kernels::RopePairs::kHalves;
  config.latent = read_latent(json, config);
  config.latent->output = "dense";
  config.latent->head_gate = true;
  config.kda = read_kda(whole, config);
  const int layers = static_cast<int>(config.layers.size());
  const auto linear = read_typed_layers(json, layers, "linear_attention", is_linear);
  for (std::size_t i = 0; i < linear.size(); ++i) {
    config.layers[i].mixing = linear[i] ? TokenMixing::kKda : TokenMixing::kAttention;
  }
  add_experts(config, json, "sigmoid");
  config.moe.names = {.choice_bias = kChoiceBias};
  return config;
}

LatentRows latent_rows(const Json& json) {
  return latent_rows_of(*read_hybrid(json).latent);
}

bool is_kernel(std::string_view name) {
  return name.ends_with("_conv1d.weight");
}

using Kernels = KernelRules<is_kernel>;

bool stays_float(std::string_view module) {
  constexpr std::array<std::string_view, 9> kFloats{
      "word_embeddings",
      "lm_head",
      "mlp.gate",
      "attention.q_a_proj",
      "attention.q_b_proj",
      "attention.kv_a_proj_with_mqa",
      "attention.embed_q",
      "attention.unembed_out",
      "attention.b_proj",
  };
  return std::ranges::any_of(kFloats, [&](std::string_view end) { return module.ends_with(end); });
}

// Queries and gates of latent attention.
bool stays_float_there(std::string_view module, const Json& json) {
  const bool is_named =
      module.ends_with("attention.q_proj") || module.ends_with("attention.g_proj");
  const auto at = module.find("layers.");
  const auto layer = is_named && at != std::string_view::npos
                         ? numbered_name(module.substr(at), "layers.")
                         : std::nullopt;
  if (!layer) {
    return false;
  }
  const auto layers = read_hybrid(json).layers;
  const auto index = static_cast<std::size_t>(layer->number);
  return index < layers.size() && layers[index].mixing == TokenMixing::kAttention;
}

}  // namespace

Architecture bailing_moe() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .tensors =
          {.is_unread = is_behind_layers,
           .mlx_names = mlx_names,
           .keeps_dtype = is_choice_bias,
           .own_format = own_format},
  };
}

Architecture bailing_hybrid() {
  return {
      .read = read_hybrid,
      .build_layer = pre_norm_layer,
      .tensors =
          {.is_unread = is_behind_layers,
           .needs_sanitizing = Kernels::needs_sanitizing,
           .sanitized = Kernels::sanitized,
           .latent_rows = latent_rows,
           .stays_float = stays_float,
           .stays_float_there = stays_float_there},
  };
}

}  // namespace saker::models
