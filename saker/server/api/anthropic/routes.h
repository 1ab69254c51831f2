// SPDX-License-Identifier: Apache-2.0
#pragma once

// Anthropic's API: messages, and the count of their tokens.

#include "saker/base/json/json.h"
#include "saker/server/http/router.h"
#include "saker/server/models/model_catalog.h"
#include "saker/server/turns/api_error.h"

#include <memory>
#include <string_view>

namespace saker::server::anthropic {

void add_routes(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog);

// {"type": "error", "error": {"type", "message"}}.
Json error_json(const ApiError& error);
http::Response error_response(const ApiError& error);

// The list of models in Anthropic's shape.
Json models_json(const ModelCatalog& catalog);
// One model. Throws a 404.
Json model_json(const ModelCatalog& catalog, std::string_view name);

}  // namespace saker::server::anthropic
