// SPDX-License-Identifier: Apache-2.0
#pragma once

// Anthropic's API: messages, and the count of their tokens.

#include "saker/base/json/json.h"
#include "saker/server/http/router.h"
#include "saker/server/turns/api_error.h"
#include "saker/server/turns/served_model.h"

#include <memory>

namespace saker::server::anthropic {

void add_routes(http::Router& router, const std::shared_ptr<const ServedModel>& model);

// {"type": "error", "error": {"type", "message"}}.
Json error_json(const ApiError& error);
http::Response error_response(const ApiError& error);

// The list of models in Anthropic's shape.
Json models_json(const ServedModel& model);

}  // namespace saker::server::anthropic
