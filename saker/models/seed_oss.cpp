// SPDX-License-Identifier: Apache-2.0
// Seed-OSS: Llama's layers; queries, keys and values have biases.
#include "saker/models/architecture.h"

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  return read_decoder_config(json, {.kv_heads = 8, .head_dim = 128, .context_length = 524288});
}

}  // namespace

Architecture seed_oss() {
  return {read, pre_norm_layer};
}

}  // namespace saker::models
