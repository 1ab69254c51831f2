// SPDX-License-Identifier: Apache-2.0
// Granite 3 and 4, dense: Llama's layers with four factors.
#include "saker/models/architecture.h"
#include "saker/models/granite_factors.h"

#include <string_view>

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.context_length = 2048});
  set_granite_factors(config, json);
  return config;
}

}  // namespace

void set_granite_factors(DecoderConfig& config, const Json& json) {
  const auto factor = [&](std::string_view key) {
    return static_cast<float>(read_positive(json, key, 1.0));
  };
  config.embedding_scale = factor("embedding_multiplier");
  config.attention_scale = factor("attention_multiplier");
  config.residual_scale = factor("residual_multiplier");
  config.logit_scale = 1.0F / factor("logits_scaling");
}

Architecture granite() {
  return {read, pre_norm_layer};
}

}  // namespace saker::models
