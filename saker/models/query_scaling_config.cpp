// SPDX-License-Identifier: Apache-2.0
#include "saker/models/query_scaling_config.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace saker::models {

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

}  // namespace saker::models
