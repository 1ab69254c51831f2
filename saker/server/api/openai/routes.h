// SPDX-License-Identifier: Apache-2.0
#pragma once

// OpenAI's API: chat completions, completions, models.

#include "saker/server/http/router.h"
#include "saker/server/models/model_catalog.h"

#include <memory>

namespace saker::server::openai {

void add_routes(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog);

}  // namespace saker::server::openai
