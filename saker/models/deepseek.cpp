// SPDX-License-Identifier: Apache-2.0
// DeepSeek V2 and V3, and models of that form: Kimi K2 and Moonlight (V3's), GLM 4.7 Flash, Mistral
// Small 4. Latent attention, whose rotating elements are neighbours. The first layers have an MLP,
// the others a mixture of experts with an MLP beside it. In V3 and GLM the layer behind the last
// drafts tokens. Larger checkpoints have the text part in
// `text_config`.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/latent_config.h"
#include "saker/models/moe_config.h"
#include "saker/models/mtp.h"
#include "saker/models/query_scaling_config.h"

#include <cstdint>
#include <string_view>

namespace saker::models {
namespace {

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
  nn::LatentOptions latent = read_latent(json, config);
  if (family != Family::kGlm) {
    latent.norm.eps = 1e-6F;
  }
  const bool neighbours = json_bool(json, "rope_interleave", true);
  config.ropes.front().pairs =
      neighbours ? kernels::RopePairs::kNeighbours : kernels::RopePairs::kHalves;
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

void set_experts(const Json& json, Family family, DecoderConfig& config) {
  if (!json_has(json, "n_routed_experts")) {
    return;  // None in any layer.
  }
  set_sparse_layers_by_type(config, json);
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
  set_rotating_dim(json);
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
  return latent_rows_of(*read(json, family).latent);
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
  all.is_unread = is_behind_next_layer;
  all.is_of_draft_head = is_of_next_layer;
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
      .has_next_layers = true,
      .tensors = splitting_rules<Family::kV3>(),
  };
}

Architecture glm4_moe_lite() {
  return {
      .read = read_family<Family::kGlm>,
      .build_layer = pre_norm_layer,
      .has_next_layers = true,
      .tensors = splitting_rules<Family::kGlm>(),
  };
}

Architecture mistral4() {
  auto tensors = splitting_rules<Family::kMistral>();
  tensors.stays_float = TensorRules().stays_float;
  tensors.is_unread = is_behind_layers;
  tensors.is_of_draft_head = TensorRules().is_of_draft_head;
  return {
      .read = read_family<Family::kMistral>,
      .build_layer = pre_norm_layer,
      .tensors = tensors,
  };
}

}  // namespace saker::models
