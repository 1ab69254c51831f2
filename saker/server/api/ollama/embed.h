// SPDX-License-Identifier: Apache-2.0
#pragma once

// POST /api/embed and its older form, POST /api/embeddings.

#include "saker/base/json/json.h"
#include "saker/server/turns/served_model.h"

namespace saker::server::ollama {

// Answers to bodies. They wait for the engine. Throw a 400, or a 404 for an unknown model.
Json embed(const Json& body, const ServedModel& model);
Json old_embedding(const Json& body, const ServedModel& model);

}  // namespace saker::server::ollama
