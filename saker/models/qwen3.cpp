// SPDX-License-Identifier: Apache-2.0
// Qwen 3: pre-norm decoder, grouped-query attention with an RMS norm on every head's q and k,
// SwiGLU. Windows as in Qwen 2.
#include "saker/models/architecture.h"

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.head_dim = 128});
  config.head_norms = true;
  set_late_windows(config, json);
  return config;
}

}  // namespace

Architecture qwen3() {
  return {.read = read, .build_layer = pre_norm_layer, .has_mtp_heads = true};
}

}  // namespace saker::models
