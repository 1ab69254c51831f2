// SPDX-License-Identifier: Apache-2.0
// EXAONE 4: attention and MLP read the stream and have a norm on their output; queries and keys have
// one over each head. With a sliding window, three of four layers slide, and the others do not rotate.
#include "saker/base/error.h"
#include "saker/models/architecture.h"

#include <cstddef>
#include <string>

namespace saker::models {
namespace {

bool slides(const Json& json, int layer) {
  if (read_window(json, 4096) == 0) {
    return false;
  }
  const auto pattern = json.find("sliding_window_pattern");
  if (pattern != json.end() && pattern->is_string()) {  // "LLLG": local layers and a global one.
    const auto letters = pattern->get<std::string>();
    require(
        !letters.empty() && letters.find_first_not_of("LG") == std::string::npos,
        ErrorCode::kCorruptData,
        "[config] sliding_window_pattern is {}, expected a number or letters L and G",
        describe_json(*pattern)
    );
    return letters[static_cast<std::size_t>(layer) % letters.size()] == 'L';
  }
  return (layer + 1) % read_size(json, "sliding_window_pattern", 4, 1 << 24) != 0;
}

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.context_length = 2048, .norm_eps = 1e-5});
  config.head_norms = true;
  const int window = read_window(json, 4096);
  const auto sliding = read_sliding_layers(json, static_cast<int>(config.layers.size()), slides);
  set_windows(config, sliding, window);
  if (window > 0) {
    set_rotating_layers(config, sliding);
  }
  return config;
}

}  // namespace

Architecture exaone4() {
  return {read, post_norm_layer};
}

}  // namespace saker::models
