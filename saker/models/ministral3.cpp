// SPDX-License-Identifier: Apache-2.0
// Ministral 3: Mistral's layers. Queries are scaled by a factor that grows with their position. Larger
// checkpoints of `mistral3` have the text part in `text_config`; that of Mistral Small 3 has no such
// factor, and that of Mistral Small 4 is another architecture with the same names.
#include "saker/models/architecture.h"
#include "saker/models/query_scaling_config.h"

#include <string_view>

namespace saker::models {
namespace {

bool has_latents(const Json& whole) {
  const auto text = whole.find("text_config");
  return text != whole.end() && text->is_object() &&
         json_string(*text, "model_type", "") == "mistral4";
}

DecoderConfig read(const Json& whole) {
  if (has_latents(whole)) {
    return mistral4().read(whole);
  }
  const auto json = text_config(whole, "ministral3");
  auto config = mistral().read(json);
  config.query_scaling = read_query_scaling(json, config.ropes.front());
  return config;
}

// mlx-lm has the text part in a scope of its own.
std::string_view mlx_scope(const Json& config) {
  return json_string(config, "model_type", "") == "mistral3" ? "language_model." : "";
}

}  // namespace

Architecture ministral3() {
  return {.read = read, .build_layer = pre_norm_layer, .tensors = {.mlx_scope = mlx_scope}};
}

}  // namespace saker::models
