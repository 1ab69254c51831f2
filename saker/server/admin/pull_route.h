// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ollama's POST /api/pull: fetches a model, with its progress as lines of JSON.

#include "saker/server/admin/model_routes.h"
#include "saker/server/http/router.h"

namespace saker::server {

using Pull = decltype(ModelRouteOptions::pull);

// One pull at a time; the next one gets a 429. Without `pull` each gets a 403.
void add_pull(http::Router& router, const Pull& pull);

}  // namespace saker::server
