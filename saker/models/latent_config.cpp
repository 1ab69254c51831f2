// SPDX-License-Identifier: Apache-2.0
#include "saker/models/latent_config.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace saker::models {
namespace {

constexpr std::int64_t kMaxLatentDim = 1 << 11;  // A cache has a row of two together.
constexpr std::int64_t kMaxLatentRank = 1 << 14;
constexpr std::int64_t kMaxHeadOutputs = 1 << 24;

}  // namespace

void set_rotating_dim(Json& json) {
  const auto rope_dim = json_int_in(json, "qk_rope_head_dim", 1, kMaxLatentDim);
  require(
      rope_dim % 2 == 0,
      ErrorCode::kUnsupported,
      "[config] qk_rope_head_dim is {}, expected an even number",
      rope_dim
  );
  json["head_dim"] = rope_dim;
}

nn::LatentOptions read_latent(const Json& json, const DecoderConfig& config) {
  const auto size = [&](std::string_view key, std::int64_t high) {
    return static_cast<int>(json_int_in(json, key, 1, high));
  };
  nn::LatentOptions latent;
  latent.hidden = config.hidden;
  latent.heads = config.heads;
  latent.query_rank = json_has(json, "q_lora_rank") ? size("q_lora_rank", kMaxLatentRank) : 0;
  latent.rank = size("kv_lora_rank", kMaxLatentDim);
  latent.plain_dim = size("qk_nope_head_dim", kMaxLatentDim);
  latent.rope_dim = config.head_dim;
  latent.value_dim = size("v_head_dim", kMaxLatentDim);
  latent.norm = config.norm;
  const std::int64_t widest = latent.plain_dim + std::max(latent.rope_dim, latent.value_dim);
  require(
      config.heads * widest <= kMaxHeadOutputs,
      ErrorCode::kUnsupported,
      "[config] num_attention_heads {} times qk_nope_head_dim {} and v_head_dim {} is above {}",
      config.heads,
      latent.plain_dim,
      latent.value_dim,
      kMaxHeadOutputs
  );
  const double dim = latent.plain_dim + latent.rope_dim;
  latent.attend.scale = static_cast<float>(config.ropes.front().score_factor / std::sqrt(dim));
  return latent;
}

}  // namespace saker::models
