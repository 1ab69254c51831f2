// SPDX-License-Identifier: Apache-2.0
#pragma once

// The server's counts in the text format of Prometheus. It asks no engine, so that it answers
// at once under any load.

#include "saker/server/models/model_catalog.h"
#include "saker/server/spans/span_queue.h"

#include <cstdint>
#include <string>

namespace saker::server {

// Saker's own names, and those of vLLM that routers and dashboards read; a line for each model.
// `spans` may be null.
std::string metrics_text(
    const ModelCatalog& catalog, std::uint64_t http_requests, const spans::SpanQueue* spans
);

}  // namespace saker::server
