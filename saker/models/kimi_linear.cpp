// SPDX-License-Identifier: Apache-2.0
// Kimi Linear: Kimi Delta Attention in most layers, latent attention without rope in the others.
// From a layer on, each has a mixture of experts for its MLP, whose sigmoid router chooses by scores
// plus biases, and an expert that all tokens share. Published checkpoints have experts in a scope of
// their own. MLX's models have them in the MLP's, and other names of kernels.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/latent_config.h"
#include "saker/models/mamba2_config.h"
#include "saker/models/moe_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::models {
namespace {

constexpr std::int64_t kMaxHeads = 1 << 12;
constexpr std::int64_t kMaxDim = 1 << 11;
constexpr std::int64_t kMaxMemory = 1 << 24;  // Numbers in a layer's state.
constexpr std::int64_t kMaxContext = std::int64_t{1} << 40;

constexpr std::string_view kSection = "linear_attn_config";

// The section of linear layers; empty: the configuration has its fields itself.
Json linear_section(const Json& json) {
  if (!json_has(json, kSection)) {
    return Json::object();
  }
  const Json& section = *json.find(kSection);
  require(
      section.is_object(),
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected an object",
      kSection,
      describe_json(section)
  );
  return section;
}

nn::KdaOptions read_kda(const Json& json, const DecoderConfig& config) {
  const Json section = linear_section(json);
  const auto size = [&](std::string_view key, std::string_view own, int fallback, auto high) {
    const auto limit = std::int64_t{high};
    return static_cast<int>(
        json_has(section, key) ? json_int_in(section, key, 1, limit)
                               : read_size(json, own, fallback, limit)
    );
  };
  nn::KdaOptions options{.hidden = config.hidden, .shape = {}, .norm = config.norm};
  kernels::KdaShape& shape = options.shape;
  shape.heads = size("num_heads", "linear_num_heads", 32, kMaxHeads);
  shape.head_dim = size("head_dim", "linear_head_dim", 128, kMaxDim);
  shape.taps =
      size("short_conv_kernel_size", "linear_conv_kernel_dim", 4, kernels::kMaxConvolutionTaps);
  require(
      shape.taps > 1,
      ErrorCode::kUnsupported,
      "[config] short_conv_kernel_size is {}, expected at least 2",
      shape.taps
  );
  const auto memory = std::int64_t{shape.heads} * shape.head_dim * shape.head_dim;
  require(
      memory <= kMaxMemory,
      ErrorCode::kUnsupported,
      "[config] {}: num_heads {} times head_dim {} times itself is above {}",
      kSection,
      shape.heads,
      shape.head_dim,
      kMaxMemory
  );
  return options;
}

// Layers are counted from 1.
bool is_listed(const Json& json, int layer) {
  const Json section = linear_section(json);
  const auto list = section.find("kda_layers");
  require(
      list != section.end() && list->is_array() &&
          std::ranges::all_of(*list, [](const Json& x) { return x.is_number_integer(); }),
      ErrorCode::kCorruptData,
      "[config] {}: kda_layers is {}, expected numbers of layers",
      kSection,
      list != section.end() ? describe_json(*list) : "missing"
  );
  return std::ranges::find(*list, Json(layer + 1)) != list->end();
}

constexpr nn::MoeNames kNames{
    .choice_bias = "gate.e_score_correction_bias",
    .single = {.gate = "w1", .up = "w3", .down = "w2"},
};
constexpr nn::MoeNames kMlxNames{.choice_bias = "e_score_correction_bias"};

void add_experts(DecoderConfig& config, const Json& json) {
  config.moe = read_moe(
      json,
      config,
      {.experts = {"num_experts", 256},
       .chosen = {"num_experts_per_token", 8},
       .width = {"moe_intermediate_size", 1024}}
  );
  const auto function = json_string(json, "moe_router_activation_func", "sigmoid");
  require(
      function == "sigmoid",
      ErrorCode::kUnsupported,
      "[config] moe_router_activation_func is \"{}\", expected \"sigmoid\"",
      function
  );
  read_grouped_sigmoid(
      json, config.moe, {.groups = {"num_expert_group", 1}, .normalized = "moe_renormalize"}
  );
  config.moe.names = kNames;
  config.moe.shared.intermediate = read_shared_width(json, {"num_shared_experts", 1}, config.moe);
  config.published_experts = "block_sparse_moe";
  config.mlx_experts = kMlxNames;
  set_sparse_layers_by_type(config, json);
}

DecoderConfig read(const Json& whole) {
  const Json defaults{
      {"kv_lora_rank", 512},
      {"qk_nope_head_dim", 128},
      {"qk_rope_head_dim", 64},
      {"v_head_dim", 128},
      {"first_k_dense_replace", 1},
      {"routed_scaling_factor", 2.446},
  };
  Json json = whole;
  for (const auto& [key, value] : defaults.items()) {
    if (!json_has(json, key)) {
      json[key] = value;
    }
  }
  set_rotating_dim(json);
  auto config = read_decoder_config(json, {.norm_eps = 1e-5});
  require(
      json_bool(json, "mla_use_nope", true),
      ErrorCode::kUnsupported,
      "[config] mla_use_nope is false, only true can be run"
  );
  config.context_length = read_size(json, "model_max_length", config.context_length, kMaxContext);
  config.latent = read_latent(json, config);
  config.ropes = {{.kind = nn::RopeKind::kNone}};
  config.kda = read_kda(json, config);
  const int layers = static_cast<int>(config.layers.size());
  const auto linear = read_typed_layers(json, layers, "linear_attention", is_listed);
  for (std::size_t i = 0; i < linear.size(); ++i) {
    config.layers[i].mixing = linear[i] ? TokenMixing::kKda : TokenMixing::kAttention;
  }
  add_experts(config, json);
  return config;
}

// MLX's models have no experts where published ones do.
void adjust(DecoderConfig& config, const nn::Weights& body) {
  const auto layers = body / "layers";
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if ((layers / fmt::to_string(i) / config.published_experts / "gate").has("weight")) {
      return;
    }
  }
  config.published_experts = {};
  config.moe.names = kMlxNames;
}

std::vector<std::string> mlx_names(std::string_view name, const Json&) {
  struct Renamed {
    std::string_view ours;
    std::string_view mlx;
  };

  constexpr std::array<Renamed, 5> kRenamed{{
      {".block_sparse_moe.gate.e_score_correction_bias", ".mlp.e_score_correction_bias"},
      {".block_sparse_moe.", ".mlp."},
      {".self_attn.q_conv1d.", ".self_attn.q_conv.conv."},
      {".self_attn.k_conv1d.", ".self_attn.k_conv.conv."},
      {".self_attn.v_conv1d.", ".self_attn.v_conv.conv."},
  }};
  std::string result(name);
  for (const Renamed& part : kRenamed) {
    if (const auto at = result.find(part.ours); at != std::string::npos) {
      result.replace(at, part.ours.size(), part.mlx);
      break;
    }
  }
  return {std::move(result)};
}

bool is_kernel(std::string_view name) {
  return name.ends_with("_conv1d.weight") || name.ends_with("_conv.conv.weight");
}

using Kernels = KernelRules<is_kernel>;

LatentRows latent_rows(const Json& json) {
  return latent_rows_of(*read(json).latent);
}

bool keeps_dtype(std::string_view name) {
  return is_choice_bias(name) || name.ends_with(".A_log") || name.ends_with(".dt_bias");
}

}  // namespace

Architecture kimi_linear() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .adjust = adjust,
      .tensors =
          {.is_unread = is_behind_layers,
           .needs_sanitizing = Kernels::needs_sanitizing,
           .sanitized = Kernels::sanitized,
           .mlx_names = mlx_names,
           .experts = kNames,
           .latent_rows = latent_rows,
           .keeps_dtype = keeps_dtype,
           .own_format = gates_of_eight_bits},
  };
}

}  // namespace saker::models
