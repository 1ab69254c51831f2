// SPDX-License-Identifier: Apache-2.0
// DeepSeek V2 and V3, and models of that form: Kimi K2 and Moonlight (V3's), GLM 4.7 Flash. Latent
// attention, whose rotating elements are neighbours. The first layers have an MLP, the others a
// mixture of experts with an MLP beside it. Larger checkpoints have the text part in `text_config`.
#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/models/architecture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

namespace saker::models {
namespace {

constexpr std::int64_t kMaxDim = 1 << 11;  // A cache has a row of two together.
constexpr std::int64_t kMaxRank = 1 << 14;
constexpr std::int64_t kMaxOutputs = 1 << 24;
constexpr std::int64_t kMaxWidth = 1 << 20;
constexpr std::int64_t kMaxExperts = 1 << 14;
constexpr std::int64_t kMaxShared = 1 << 10;

// Defaults for absent fields, and rules of the families.
struct FamilyRules {
  int query_rank = 1536;
  int plain_dim = 128;
  int value_dim = 128;
  double norm_eps = 1e-6;
  bool norms_share_eps = false;  // Norms of latents have the others' epsilon, else 1e-6.
  bool sigmoid = true;           // Routers have it, else softmax; see set_routing.
  int expert_width = 2048;
  int experts = 256;
  int chosen = 8;
  int groups = 1;
  int kept_groups = 1;
  int shared_experts = 1;
  double routing_scale = 1.0;
  int dense_layers = 0;
};

constexpr FamilyRules kV2{
    .sigmoid = false,
    .expert_width = 1407,
    .experts = 64,
    .shared_experts = 2,
};
constexpr FamilyRules kV3{.groups = 8, .kept_groups = 4, .routing_scale = 2.5, .dense_layers = 3};
constexpr FamilyRules kGlm{
    .query_rank = 768,
    .plain_dim = 192,
    .value_dim = 256,
    .norm_eps = 1e-5,
    .norms_share_eps = true,
    .expert_width = 1536,
    .experts = 64,
    .chosen = 4,
    .routing_scale = 1.8,
    .dense_layers = 1,
};

// `q_lora_rank`: null is none.
int read_query_rank(const Json& json, int fallback) {
  constexpr std::string_view kKey = "q_lora_rank";
  if (json.contains(kKey) && !json_has(json, kKey)) {
    return 0;
  }
  return static_cast<int>(read_size(json, kKey, fallback, kMaxRank));
}

int read_rope_dim(const Json& json) {
  const auto dim = read_size(json, "qk_rope_head_dim", 64, kMaxDim);
  require(
      dim % 2 == 0,
      ErrorCode::kUnsupported,
      "[config] qk_rope_head_dim is {}, expected an even number",
      dim
  );
  return static_cast<int>(dim);
}

void set_latent(const Json& json, const FamilyRules& family, DecoderConfig& config) {
  const auto size = [&](std::string_view key, int fallback) {
    return static_cast<int>(read_size(json, key, fallback, kMaxDim));
  };
  nn::LatentOptions latent;
  latent.hidden = config.hidden;
  latent.heads = config.heads;
  latent.query_rank = read_query_rank(json, family.query_rank);
  latent.rank = size("kv_lora_rank", 512);
  latent.plain_dim = size("qk_nope_head_dim", family.plain_dim);
  latent.rope_dim = config.head_dim;
  latent.value_dim = size("v_head_dim", family.value_dim);
  latent.norm = config.norm;
  if (!family.norms_share_eps) {
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

// A number in [low, high]; null is `fallback` too.
int count_in(
    const Json& json, std::string_view key, int fallback, std::int64_t low, std::int64_t high
) {
  return json_has(json, key) ? static_cast<int>(json_int_in(json, key, low, high)) : fallback;
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

// Experts are compared within the best groups.
void read_groups(const Json& json, const FamilyRules& family, nn::MoeOptions& moe) {
  moe.routing.groups = count_in(json, "n_group", family.groups, 1, kMaxExperts);
  moe.routing.kept_groups = count_in(json, "topk_group", family.kept_groups, 1, kMaxExperts);
  const int groups = moe.routing.groups;
  const int smallest = moe.routing.group_score == kernels::GroupScore::kLargestTwo ? 2 : 1;
  require(
      groups == 1 || (moe.experts % groups == 0 && moe.experts / groups >= smallest),
      ErrorCode::kCorruptData,
      "[config] n_group is {}, expected a number that cuts n_routed_experts {} into groups of {}",
      groups,
      moe.experts,
      smallest == 2 ? "two or more" : "one size"
  );
  require(
      moe.routing.kept_groups <= groups,
      ErrorCode::kCorruptData,
      "[config] topk_group is {}, expected at most n_group {}",
      moe.routing.kept_groups,
      groups
  );
}

// V3 compares sigmoids plus a bias, V2 has softmax and does not normalize.
void set_routing(const Json& json, const FamilyRules& family, nn::MoeOptions& moe) {
  kernels::RouterOptions& routing = moe.routing;
  bool grouped = true;
  if (family.sigmoid) {
    expect_name(json, "scoring_func", "sigmoid");
    expect_name(json, "topk_method", "noaux_tc");
    routing.score = kernels::RouterScore::kSigmoid;
    routing.group_score = kernels::GroupScore::kLargestTwo;
    routing.normalized = json_bool(json, "norm_topk_prob", true);
    routing.epsilon = 1e-20F;
    moe.names.choice_bias = "gate.e_score_correction_bias";
  } else {
    expect_name(json, "scoring_func", "softmax");
    grouped = json_string(json, "topk_method", "greedy") != "greedy";
    expect_name(json, "topk_method", grouped ? "group_limited_greedy" : "greedy");
    refuse_flag(json, "norm_topk_prob");
  }
  if (grouped) {
    read_groups(json, family, moe);
  }
  routing.scale =
      static_cast<float>(read_positive(json, "routed_scaling_factor", family.routing_scale));
  routing.chosen = count_in(json, "num_experts_per_tok", family.chosen, 1, kMaxExperts);
  const int compared = moe.experts / routing.groups * routing.kept_groups;
  require(
      routing.chosen <= compared,
      ErrorCode::kCorruptData,
      "[config] num_experts_per_tok is {}, expected at most {} of n_routed_experts {}",
      routing.chosen,
      compared,
      moe.experts
  );
}

// True for layers with experts, by one of two fields.
std::vector<bool> sparse_layers(const Json& json, const FamilyRules& family, std::size_t count) {
  std::vector<bool> sparse;
  if (const auto types = json.find("mlp_layer_types"); types != json.end() && !types->is_null()) {
    require(
        types->is_array() && types->size() == count,
        ErrorCode::kCorruptData,
        "[config] mlp_layer_types is {}, expected an array of num_hidden_layers {}",
        describe_json(*types),
        count
    );
    for (const Json& type : *types) {
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
  const int dense = count_in(json, "first_k_dense_replace", family.dense_layers, 0, INT32_MAX);
  const int step = count_in(json, "moe_layer_freq", 1, 1, INT32_MAX);
  for (std::size_t i = 0; i < count; ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    sparse.push_back(layer >= dense && layer % step == 0);
  }
  return sparse;
}

void set_experts(const Json& json, const FamilyRules& family, DecoderConfig& config) {
  if (json.contains("n_routed_experts") && !json_has(json, "n_routed_experts")) {
    return;  // None in any layer.
  }
  const auto sparse = sparse_layers(json, family, config.layers.size());
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    config.layers[i].experts = sparse[i];
  }
  if (std::ranges::none_of(sparse, [](bool layer) { return layer; })) {
    return;
  }
  nn::MoeOptions& moe = config.moe;
  moe.hidden = config.hidden;
  moe.intermediate = count_in(json, "moe_intermediate_size", family.expert_width, 1, kMaxWidth);
  moe.experts = count_in(json, "n_routed_experts", family.experts, 1, kMaxExperts);
  moe.activation = config.activation;
  set_routing(json, family, moe);
  const bool none = json.contains("n_shared_experts") && !json_has(json, "n_shared_experts");
  const int shared =
      none ? 0 : count_in(json, "n_shared_experts", family.shared_experts, 0, kMaxShared);
  moe.shared.intermediate = shared * moe.intermediate;
}

DecoderConfig read(const Json& whole, const FamilyRules& family) {
  auto json = text_config(whole, "deepseek_v3");
  json["head_dim"] = read_rope_dim(json);  // The common part reads what rotates.
  auto config = read_decoder_config(json, {.norm_eps = family.norm_eps});
  set_latent(json, family, config);
  set_experts(json, family, config);
  return config;
}

// Layers behind the last one predict further tokens.
bool is_unread(std::string_view name, const Json& config) {
  constexpr std::string_view kText = "language_model.";
  if (name.starts_with(kText)) {
    name.remove_prefix(kText.size());
  }
  const auto text = config.find("text_config");
  const Json& own = text != config.end() && text->is_object() ? *text : config;
  const auto layer = numbered_name(name, "model.layers.");
  return layer && layer->number >= json_int(own, "num_hidden_layers", INT64_MAX);
}

LatentRows latent_rows(const DecoderConfig& config) {
  return {config.latent->heads, config.latent->plain_dim, config.latent->value_dim};
}

bool keeps_dtype(std::string_view name) {
  return name.ends_with("e_score_correction_bias");
}

std::string_view mlx_scope(const Json& config) {
  return json_string(config, "model_type", "") == "kimi_k25" ? "language_model." : "";
}

}  // namespace

Architecture deepseek_v2() {
  return {
      .read = [](const Json& json) { return read(json, kV2); },
      .build_layer = pre_norm_layer,
      .tensors = {.is_unread = is_unread},
  };
}

Architecture deepseek_v3() {
  return {
      .read = [](const Json& json) { return read(json, kV3); },
      .build_layer = pre_norm_layer,
      .tensors =
          {.is_unread = is_unread,
           .mlx_scope = mlx_scope,
           .latent_rows = [](const Json& json) { return latent_rows(read(json, kV3)); },
           .keeps_dtype = keeps_dtype},
  };
}

Architecture glm4_moe_lite() {
  return {
      .read = [](const Json& json) { return read(json, kGlm); },
      .build_layer = pre_norm_layer,
      .tensors =
          {.is_unread = is_unread,
           .latent_rows = [](const Json& json) { return latent_rows(read(json, kGlm)); },
           .keeps_dtype = keeps_dtype},
  };
}

}  // namespace saker::models
