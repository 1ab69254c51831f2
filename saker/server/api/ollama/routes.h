// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ollama's API: chat, generate, and what clients ask about models. Streams are lines of JSON.

#include "saker/server/http/router.h"
#include "saker/server/models/model_catalog.h"
#include "saker/server/turns/api_error.h"

#include <memory>

namespace saker::server::ollama {

void add_routes(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog);

// {"error": "text"}.
http::Response error_response(const ApiError& error);

}  // namespace saker::server::ollama
