// SPDX-License-Identifier: Apache-2.0
// SmolLM3: Llama's layers, and some do not rotate. `no_rope_layers` has a 1 for each layer that does;
// without it, every `no_rope_layer_interval`-th does not.
#include "saker/base/error.h"
#include "saker/models/architecture.h"

#include <cstdint>
#include <vector>

namespace saker::models {
namespace {

// `no_rope_layers`, or its default.
bool rotates(const Json& json, int layer) {
  if (!json_has(json, "no_rope_layers")) {
    const auto interval = read_size(json, "no_rope_layer_interval", 4, 1 << 24);
    return (layer + 1) % interval != 0;
  }
  const Json& flags = *json.find("no_rope_layers");
  const auto count = json_int(json, "num_hidden_layers", 0);
  require(
      flags.is_array() && static_cast<std::int64_t>(flags.size()) == count,
      ErrorCode::kCorruptData,
      "[config] no_rope_layers has {} entries, expected an array of num_hidden_layers {}",
      flags.size(),
      count
  );
  const Json& flag = flags[static_cast<std::size_t>(layer)];
  require(
      flag == 0 || flag == 1,
      ErrorCode::kCorruptData,
      "[config] no_rope_layers has {}, expected 0 or 1",
      describe_json(flag)
  );
  return flag == 1;
}

DecoderConfig read(const Json& json) {
  auto config =
      read_decoder_config(json, {.context_length = 32768, .rope = {.default_theta = 2e6}});
  const int layers = static_cast<int>(config.layers.size());
  std::vector<bool> rotating;
  rotating.reserve(config.layers.size());
  for (int layer = 0; layer < layers; ++layer) {
    rotating.push_back(rotates(json, layer));
  }
  set_rotating_layers(config, rotating);
  const LayerPattern slides = [](const Json& source, int layer) {
    return json_bool(source, "use_sliding_window", false) && read_window(source, 0) > 0 &&
           !rotates(source, layer);
  };
  set_windows(config, read_sliding_layers(json, layers, slides), read_window(json, 0));
  return config;
}

}  // namespace

Architecture smollm3() {
  return {read, pre_norm_layer};
}

}  // namespace saker::models
