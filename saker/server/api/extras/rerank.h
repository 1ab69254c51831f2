// SPDX-License-Identifier: Apache-2.0
#pragma once

// POST /rerank: documents in the order in which they answer a query.

#include "saker/base/json/json.h"
#include "saker/server/turns/served_model.h"

namespace saker::server::extras {

// The answer to a body in the form of Jina, Cohere and vLLM ("documents") or of text-embeddings-
// inference ("texts", answered by a bare list). Waits for the engine. Throws a 400.
Json rerank(const Json& body, const ServedModel& model);

}  // namespace saker::server::extras
