// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fields of latent attention in configurations, read and checked. Errors name the field and its
// value.

#include "saker/base/json/json.h"
#include "saker/models/decoder_config.h"
#include "saker/models/tensor_rules.h"
#include "saker/nn/latent/latent_weights.h"

namespace saker::models {

// Sets `head_dim` to `qk_rope_head_dim`: the common part of a configuration reads what rotates.
void set_rotating_dim(Json& json);

// `kv_lora_rank`, `q_lora_rank` (null or missing: none), `qk_nope_head_dim` and `v_head_dim`; norms
// have the decoder's epsilon. REQUIRES: the decoder's head_dim is that of set_rotating_dim.
nn::LatentOptions read_latent(const Json& json, const DecoderConfig& config);

inline LatentRows latent_rows_of(const nn::LatentOptions& latent) {
  return {latent.heads, latent.plain_dim, latent.value_dim};
}

}  // namespace saker::models
