// SPDX-License-Identifier: Apache-2.0
// Llama 2 and 3: pre-norm decoder, grouped-query attention, SwiGLU. Layers slide only if
// `layer_types` says so.
#include "saker/models/architecture.h"

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.context_length = 2048});
  const int layers = static_cast<int>(config.layers.size());
  const auto sliding = read_sliding_layers(json, layers, [](const Json&, int) { return false; });
  set_windows(config, sliding, read_window(json, 0));
  return config;
}

}  // namespace

Architecture llama() {
  return {read, pre_norm_layer};
}

}  // namespace saker::models
