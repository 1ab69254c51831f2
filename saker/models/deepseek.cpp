// SPDX-License-Identifier: Apache-2.0
// DeepSeek V2 and V3, and models of that form: Kimi K2 and Moonlight (V3's), GLM 4.7 Flash, Mistral
// Small 4. Latent attention, whose rotating elements are neighbours. The first layers have an MLP,
// the others a mixture of experts with an MLP beside it. Larger checkpoints have the text part in
// `text_config`.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"
#include "saker/models/query_scaling_config.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::models {
namespace {

constexpr std::int64_t kMaxDim = 1 << 11;  // A cache has a row of two together.
constexpr std::int64_t kMaxRank = 1 << 14;
constexpr std::int64_t kMaxOutputs = 1 << 24;

enum class Family : std::uint8_t { kV2, kV3, kGlm, kMistral };

// Values of absent fields.
Json defaults_of(Family family) {
  Json defaults{
      {"q_lora_rank", 1536},
      {"kv_lora_rank", 512},
      {"qk_nope_head_dim", 128},
      {"qk_rope_head_dim", 64},
      {"v_head_dim", 128},
      {"n_routed_experts", 64},
      {"n_shared_experts", 2},
      {"num_experts_per_tok", 8},
      {"moe_intermediate_size", 1407},
      {"first_k_dense_replace", 0},
  };
  if (family == Family::kV3) {
    defaults.update(
        {{"n_routed_experts", 256},
         {"n_shared_experts", 1},
         {"moe_intermediate_size", 2048},
         {"first_k_dense_replace", 3},
         {"n_group", 8},
         {"topk_group", 4},
         {"routed_scaling_factor", 2.5}}
    );
  } else if (family == Family::kGlm) {
    defaults.update(
        {{"q_lora_rank", 768},
         {"qk_nope_head_dim", 192},
         {"v_head_dim", 256},
         {"n_shared_experts", 1},
         {"num_experts_per_tok", 4},
         {"moe_intermediate_size", 1536},
         {"first_k_dense_replace", 1},
         {"routed_scaling_factor", 1.8},
         {"rms_norm_eps", 1e-5}}
    );
  }
  if (family == Family::kMistral) {
    defaults.update(
        {{"q_lora_rank", 1024},
         {"kv_lora_rank", 256},
         {"qk_nope_head_dim", 64},
         {"n_routed_experts", 128},
         {"n_shared_experts", 1},
         {"num_experts_per_tok", 4},
         {"moe_intermediate_size", 2048}}
    );
  }
  return defaults;
}

void set_latent(const Json& json, Family family, DecoderConfig& config) {
  const auto size = [&](std::string_view key, std::int64_t high) {
    return static_cast<int>(json_int_in(json, key, 1, high));
  };
  nn::LatentOptions latent;
  latent.hidden = config.hidden;
  latent.heads = config.heads;
  latent.query_rank = json_has(json, "q_lora_rank") ? size("q_lora_rank", kMaxRank) : 0;
  latent.rank = size("kv_lora_rank", kMaxDim);
  latent.plain_dim = size("qk_nope_head_dim", kMaxDim);
  latent.rope_dim = config.head_dim;
  latent.value_dim = size("v_head_dim", kMaxDim);
  latent.norm = config.norm;
  if (family != Family::kGlm) {
    latent.norm.eps = 1e-6F;
  }
  const std::int64_t widest = latent.plain_dim + std::max(latent.rope_dim, latent.value_dim);
  require(
      config.heads * widest <= kMaxOutputs,
      ErrorCode::kUnsupported,
      "[config] num_attention_heads {} times qk_nope_head_dim {} and v_head_dim {} is above {}",
      config.heads,
      latent.plain_dim,
      latent.value_dim,
      kMaxOutputs
  );
  nn::RopeOptions& rope = config.ropes.front();
  const bool neighbours = json_bool(json, "rope_interleave", true);
  rope.pairs = neighbours ? kernels::RopePairs::kNeighbours : kernels::RopePairs::kHalves;
  const double dim = latent.plain_dim + latent.rope_dim;
  latent.attend.scale = static_cast<float>(rope.score_factor / std::sqrt(dim));
  config.latent = latent;
}

void expect_name(const Json& json, std::string_view key, std::string_view expected) {
  const auto name = json_string(json, key, expected);
  require(
      name == expected,
      ErrorCode::kUnsupported,
      "[config] {} is \"{}\", expected \"{}\"",
      key,
      name,
      expected
  );
}

// V3 compares sigmoids plus a bias, the others softmax; V2 does not normalize.
void set_routing(const Json& json, Family family, nn::MoeOptions& moe) {
  if (family == Family::kMistral) {
    read_grouped_sigmoid(json, moe);
    moe.routing.score = kernels::RouterScore::kSoftmax;
    return;
  }
  if (family != Family::kV2) {
    expect_name(json, "scoring_func", "sigmoid");
    expect_name(json, "topk_method", "noaux_tc");
    read_grouped_sigmoid(json, moe);
    require(
        moe.routing.groups == 1 || moe.experts / moe.routing.groups > 1,
        ErrorCode::kCorruptData,
        "[config] n_group is {}, expected groups of two or more of {} experts",
        moe.routing.groups,
        moe.experts
    );
    moe.names.choice_bias = "gate.e_score_correction_bias";
    return;
  }
  expect_name(json, "scoring_func", "softmax");
  refuse_flag(json, "norm_topk_prob");
  if (json_string(json, "topk_method", "greedy") == "greedy") {
    moe.routing.scale = static_cast<float>(read_positive(json, "routed_scaling_factor", 1.0));
    return;
  }
  expect_name(json, "topk_method", "group_limited_greedy");
  read_grouped_sigmoid(json, moe);
  moe.routing.score = kernels::RouterScore::kSoftmax;
  moe.routing.group_score = kernels::GroupScore::kLargest;
  moe.routing.normalized = false;
}

// True for layers with experts, by one of two fields.
std::vector<bool> sparse_layers(const Json& json, std::size_t count) {
  std::vector<bool> sparse;
  if (!json_has(json, "mlp_layer_types")) {
    const auto dense = read_count(json, {"first_k_dense_replace", 0}, INT32_MAX);
    const auto step = read_size(json, "moe_layer_freq", 1, INT32_MAX);
    for (std::int64_t i = 0; std::cmp_less(i, count); ++i) {
      sparse.push_back(i >= dense && i % step == 0);
    }
    return sparse;
  }
  const Json& types = *json.find("mlp_layer_types");
  require(
      types.is_array() && types.size() == count,
      ErrorCode::kCorruptData,
      "[config] mlp_layer_types is {}, expected an array of num_hidden_layers {}",
      describe_json(types),
      count
  );
  for (const Json& type : types) {
    require(
        type == "dense" || type == "sparse",
        ErrorCode::kUnsupported,
        "[config] mlp_layer_types has {}, expected \"dense\" or \"sparse\"",
        describe_json(type)
    );
    sparse.push_back(type == "sparse");
  }
  return sparse;
}

void set_experts(const Json& json, Family family, DecoderConfig& config) {
  if (!json_has(json, "n_routed_experts")) {
    return;  // None in any layer.
  }
  const auto sparse = sparse_layers(json, config.layers.size());
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    config.layers[i].experts = sparse[i];
  }
  config.moe = read_moe(json, config, {.experts = {"n_routed_experts"}});
  set_routing(json, family, config.moe);
  config.moe.shared.intermediate = read_shared_width(json, {"n_shared_experts", 0}, config.moe);
}

// Mistral's files say which part of a whole head rotates.
void drop_rotating_part(Json& json) {
  for (const auto* key : {"rope_parameters", "rope_scaling"}) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_object()) {
      found->erase("partial_rotary_factor");
    }
  }
}

DecoderConfig read(const Json& whole, Family family) {
  auto json = text_config(whole, "deepseek_v3");
  const Json defaults = defaults_of(family);
  for (const auto& [key, value] : defaults.items()) {
    if (!json.contains(key)) {
      json[key] = value;
    }
  }
  const auto rope_dim = json_int_in(json, "qk_rope_head_dim", 1, kMaxDim);
  require(
      rope_dim % 2 == 0,
      ErrorCode::kUnsupported,
      "[config] qk_rope_head_dim is {}, expected an even number",
      rope_dim
  );
  json["head_dim"] = rope_dim;  // The common part reads what rotates.
  if (family == Family::kMistral) {
    drop_rotating_part(json);
  }
  auto config = read_decoder_config(json, {});
  set_latent(json, family, config);
  if (family == Family::kMistral) {
    config.latent->query_scaling = read_query_scaling(json, config.ropes.front());
  }
  set_experts(json, family, config);
  return config;
}

template <Family family>
DecoderConfig read_family(const Json& json) {
  return read(json, family);
}

// mlx-lm's model splits the weights of heads, but not in V2.
template <Family family>
LatentRows latent_rows(const Json& json) {
  const auto latent = *read(json, family).latent;
  return {latent.heads, latent.plain_dim, latent.value_dim};
}

std::string_view mlx_scope(const Json& config) {
  return json_string(config, "model_type", "") == "kimi_k25" ? "language_model." : "";
}

TensorRules rules() {
  return {
      .is_unread = is_behind_layers,
      .mlx_scope = mlx_scope,
      .keeps_dtype = is_choice_bias,
      .stays_float = [](std::string_view module) { return module.ends_with("mlp.gate"); },
  };
}

template <Family family>
TensorRules splitting_rules() {
  auto all = rules();
  all.latent_rows = latent_rows<family>;
  return all;
}

}  // namespace

Architecture deepseek_v2() {
  return {.read = read_family<Family::kV2>, .build_layer = pre_norm_layer, .tensors = rules()};
}

Architecture deepseek_v3() {
  return {
      .read = read_family<Family::kV3>,
      .build_layer = pre_norm_layer,
      .tensors = splitting_rules<Family::kV3>(),
  };
}

Architecture glm4_moe_lite() {
  return {
      .read = read_family<Family::kGlm>,
      .build_layer = pre_norm_layer,
      .tensors = splitting_rules<Family::kGlm>(),
  };
}

Architecture mistral4() {
  auto tensors = splitting_rules<Family::kMistral>();
  tensors.stays_float = TensorRules().stays_float;
  return {
      .read = read_family<Family::kMistral>,
      .build_layer = pre_norm_layer,
      .tensors = tensors,
  };
}

}  // namespace saker::models
