// SPDX-License-Identifier: Apache-2.0
// Qwen 2 and 2.5: Llama's layers with biases on q, k and v. With `use_sliding_window`, layers from
// `max_window_layers` on slide.
#include "saker/models/architecture.h"

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {});
  set_late_windows(config, json);
  return config;
}

}  // namespace

Architecture qwen2() {
  return {read, pre_norm_layer};
}

}  // namespace saker::models
