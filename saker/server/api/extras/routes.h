// SPDX-License-Identifier: Apache-2.0
#pragma once

// Routes of llama-server and vLLM beside OpenAI's: tokens, templates, scores, properties.

#include "saker/server/http/router.h"
#include "saker/server/models/model_catalog.h"

#include <memory>

namespace saker::server::extras {

void add_routes(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog);

}  // namespace saker::server::extras
