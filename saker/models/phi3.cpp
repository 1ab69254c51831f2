// SPDX-License-Identifier: Apache-2.0
// Phi 3 to Phi 4: Llama's layers with joined projections. A part of a head may rotate. Long versions
// have rope factors of their own for every frequency. A window as wide as the context is none.
#include "saker/models/architecture.h"

#include <string>
#include <vector>

namespace saker::models {
namespace {

// Old files call longrope "su" or "yarn".
Json with_rope_names(Json json) {
  for (const auto* key : {"rope_scaling", "rope_parameters"}) {
    const auto rope = json.find(key);
    if (rope == json.end() || !rope->is_object()) {
      continue;
    }
    for (const auto* name : {"type", "rope_type"}) {
      const auto type = rope->find(name);
      if (type == rope->end() || !type->is_string()) {
        continue;
      }
      const auto given = type->get<std::string>();
      if (given == "su" || given == "yarn") {
        *type = "longrope";
      }
    }
  }
  if (!json_has(json, "original_max_position_embeddings")) {
    json["original_max_position_embeddings"] = 4096;
  }
  return json;
}

DecoderConfig read(const Json& whole) {
  const Json json = with_rope_names(whole);
  auto config = read_decoder_config(
      json, {.context_length = 4096, .rope = {.partial = true}, .norm_eps = 1e-5}
  );
  config.joined_projections = true;
  const int given = read_window(json, 0);
  const int window = given < config.context_length ? given : 0;
  set_windows(config, std::vector<bool>(config.layers.size(), window > 0), window);
  return config;
}

}  // namespace

Architecture phi3() {
  return {read, pre_norm_layer};
}

}  // namespace saker::models
