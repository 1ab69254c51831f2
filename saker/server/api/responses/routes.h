// SPDX-License-Identifier: Apache-2.0
#pragma once

// OpenAI's Responses: answers made of items, which later requests can continue.

#include "saker/server/http/router.h"
#include "saker/server/models/model_catalog.h"

#include <memory>

namespace saker::server::responses {

void add_routes(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog);

}  // namespace saker::server::responses
