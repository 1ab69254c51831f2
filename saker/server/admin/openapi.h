// SPDX-License-Identifier: Apache-2.0
#pragma once

// GET /openapi.json: the server's routes as OpenAPI 3.1. The routes are those of the router;
// openapi.json beside this file has their summaries and the schemas of their bodies.

#include "saker/base/json/json.h"
#include "saker/server/http/router.h"

#include <string_view>

namespace saker::server {

// The content of openapi.json.
std::string_view openapi_text();

// The description. A route without a summary has "x-undocumented"; summaries without a route are
// listed in "x-no-routes". Tests find both.
Json openapi(const http::Router& router);

}  // namespace saker::server
