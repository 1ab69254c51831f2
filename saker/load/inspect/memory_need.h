// SPDX-License-Identifier: Apache-2.0
#pragma once

// A running model's memory, from its configuration and tensor headers alone. Sizes are in bytes.

#include "saker/base/json/json.h"
#include "saker/load/inspect/inspect.h"
#include "saker/load/inspect/tensor_headers.h"
#include "saker/models/tensor_roster.h"

#include <vector>

namespace saker::load {

// The cache of each layer. REQUIRES: `config` has a known `model_type`. Throws as
// models::check_config does.
std::vector<CacheLayer> model_caches(const Json& config, const Headers& headers, int kv_bits);

// Memory of one conversation: the layers' weights, the arrays of a pass, and the cache of
// kUsualTokens (or of the context if that is shorter).
inline constexpr int kUsualTokens = 4096;
MemoryNeed memory_need(
    const models::TensorRoster& roster,
    const Headers& headers,
    const std::vector<CacheLayer>& caches,
    const ModelSummary& model
);

}  // namespace saker::load
