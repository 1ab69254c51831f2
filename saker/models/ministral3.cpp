// SPDX-License-Identifier: Apache-2.0
// Ministral 3: Mistral's layers. Queries are scaled by a factor that grows with their position. Larger
// checkpoints of `mistral3` have the text part in `text_config`; that of Mistral Small has no such
// factor.
#include "saker/base/error.h"
#include "saker/models/architecture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace saker::models {
namespace {

// The factor's numbers are those of the rope.
nn::QueryScaling read_query_scaling(const Json& json, const nn::RopeOptions& rope) {
  constexpr auto kKey = "llama_4_scaling_beta";
  double beta = 0.0;
  for (const auto* spelling : {"rope_parameters", "rope_scaling"}) {
    const auto parameters = json.find(spelling);
    if (parameters != json.end() && parameters->is_object() && json_has(*parameters, kKey)) {
      beta = json_double(*parameters, kKey, 0.0);
    }
  }
  require(
      std::isfinite(beta) && beta >= 0.0 && beta < 1e3,
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected a number in [0, 1000)",
      kKey,
      beta
  );
  require(
      beta == 0.0 || rope.original_context >= 1.0,
      ErrorCode::kCorruptData,
      "[config] rope original_max_position_embeddings is {}, expected at least 1",
      rope.original_context
  );
  const double period = std::clamp(rope.original_context, 1.0, 1e15);
  return {beta, static_cast<std::int64_t>(period)};
}

DecoderConfig read(const Json& whole) {
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
