// SPDX-License-Identifier: Apache-2.0
// Mistral 7B and its successors: Llama's layers. With a sliding window, all layers slide; version
// 0.1 has one of 4096, later ones say null.
#include "saker/models/architecture.h"

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.context_length = 131072});
  const int window = read_window(json, 0);
  set_windows(config, std::vector<bool>(config.layers.size(), window > 0), window);
  return config;
}

}  // namespace

Architecture mistral() {
  return {read, pre_norm_layer};
}

}  // namespace saker::models
