// SPDX-License-Identifier: Apache-2.0
// Qwen 2 and 2.5: Llama's layers with biases on q, k and v. With `use_sliding_window`, layers from
// `max_window_layers` on slide.
#include "saker/models/architecture.h"

#include <limits>

namespace saker::models {
namespace {

bool slides(const Json& json, int layer) {
  return json_bool(json, "use_sliding_window", false) &&
         json_int(json, "max_window_layers", 28) <= layer;
}

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {});
  const int window = json_bool(json, "use_sliding_window", false) ? read_window(json, 4096) : 0;
  const int layers = static_cast<int>(config.layers.size());
  const auto sliding = read_sliding_layers(
      json, layers, window > 0 ? slides : [](const Json&, int) { return false; }
  );
  set_windows(config, sliding, window);
  return config;
}

}  // namespace

Architecture qwen2() {
  return {read, pre_norm_layer};
}

}  // namespace saker::models
