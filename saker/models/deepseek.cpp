// SPDX-License-Identifier: Apache-2.0
// DeepSeek V2 and V3, and models of that form: Kimi K2 and Moonlight (V3's), GLM 4.7 Flash. Latent
// attention, whose rotating elements are neighbours. The first layers have an MLP, the others a
// mixture of experts with an MLP beside it. Larger checkpoints have the text part in `text_config`.
#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/models/architecture.h"

#include <cmath>
#include <cstdint>
#include <string_view>

namespace saker::models {
namespace {

constexpr std::int64_t kMaxDim = 1 << 11;  // Of two together a cache has a row.
constexpr std::int64_t kMaxRank = 1 << 14;
constexpr std::int64_t kMaxOutputs = 1 << 24;

// What differs between the families: defaults for absent fields, and a rule.
struct LatentDefaults {
  int query_rank = 1536;
  int plain_dim = 128;
  int value_dim = 128;
  double norm_eps = 1e-6;
  bool norms_share_eps = false;  // Norms of latents have the others' epsilon, else 1e-6.
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

void set_latent(const Json& json, const LatentDefaults& defaults, DecoderConfig& config) {
  const auto size = [&](std::string_view key, int fallback) {
    return static_cast<int>(read_size(json, key, fallback, kMaxDim));
  };
  nn::LatentOptions latent;
  latent.hidden = config.hidden;
  latent.heads = config.heads;
  latent.query_rank = read_query_rank(json, defaults.query_rank);
  latent.rank = size("kv_lora_rank", 512);
  latent.plain_dim = size("qk_nope_head_dim", defaults.plain_dim);
  latent.rope_dim = config.head_dim;
  latent.value_dim = size("v_head_dim", defaults.value_dim);
  latent.norm = config.norm;
  if (!defaults.norms_share_eps) {
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

DecoderConfig read(const Json& whole, const LatentDefaults& defaults) {
  auto json = text_config(whole, "deepseek_v3");
  json["head_dim"] = read_rope_dim(json);  // What rotates, for the common part.
  auto config = read_decoder_config(json, {.norm_eps = defaults.norm_eps});
  set_latent(json, defaults, config);
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

std::string_view mlx_scope(const Json& config) {
  return json_string(config, "model_type", "") == "kimi_k25" ? "language_model." : "";
}

}  // namespace

Architecture deepseek_v2() {
  return {
      .read = [](const Json& json) { return read(json, {}); },
      .build_layer = pre_norm_layer,
      .tensors = {.is_unread = is_unread},
  };
}

Architecture deepseek_v3() {
  return {
      .read = [](const Json& json) { return read(json, {}); },
      .build_layer = pre_norm_layer,
      .tensors = {.is_unread = is_unread, .mlx_scope = mlx_scope},
  };
}

Architecture glm4_moe_lite() {
  const auto own = [](const Json& json) {
    return read(
        json,
        {.query_rank = 768,
         .plain_dim = 192,
         .value_dim = 256,
         .norm_eps = 1e-5,
         .norms_share_eps = true}
    );
  };
  return {.read = own, .build_layer = pre_norm_layer, .tensors = {.is_unread = is_unread}};
}

}  // namespace saker::models
