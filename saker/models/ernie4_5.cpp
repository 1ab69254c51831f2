// SPDX-License-Identifier: Apache-2.0
// ERNIE 4.5, dense: Llama's layers that rotate neighbouring elements.
#include "saker/models/architecture.h"

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(
      json,
      {.kv_heads = 2,
       .head_dim = 128,
       .context_length = 131072,
       .rope = {.default_theta = 5e5},
       .norm_eps = 1e-5}
  );
  config.ropes.front().pairs = kernels::RopePairs::kNeighbours;
  return config;
}

}  // namespace

Architecture ernie4_5() {
  return {read, pre_norm_layer};
}

}  // namespace saker::models
