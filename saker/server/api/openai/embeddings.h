// SPDX-License-Identifier: Apache-2.0
#pragma once

// POST /v1/embeddings: vectors of texts, as numbers or in base64.

#include "saker/base/json/json.h"
#include "saker/server/turns/served_model.h"

namespace saker::server::openai {

// The answer to a body. Waits for the engine. Throws a 400, or a 404 for an unknown model.
Json embeddings(const Json& body, const ServedModel& model);

}  // namespace saker::server::openai
