// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory that a model takes while it runs, from its configuration and tensor headers alone.
// Sizes are in bytes.

#include "saker/base/json.h"
#include "saker/load/inspect/inspect.h"
#include "saker/load/inspect/tensor_headers.h"
#include "saker/models/tensor_roster.h"

#include <vector>

namespace saker::load {

// What each layer keeps of a token. `config`: with a known `model_type`. Throws as
// models::check_config.
std::vector<CacheLayer> model_caches(const Json& config, const Headers& headers, int kv_bits);

// Of one conversation: weights that layers take, the cache of kUsualTokens or the whole context
// where that is shorter, and the arrays of a pass.
inline constexpr int kUsualTokens = 4096;
MemoryNeed memory_need(
    const models::TensorRoster& roster,
    const Headers& headers,
    const std::vector<CacheLayer>& caches,
    const ModelSummary& model
);

}  // namespace saker::load
