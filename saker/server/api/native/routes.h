// SPDX-License-Identifier: Apache-2.0
#pragma once

// llama-server's own routes that generate: /completion continues texts or tokens, /infill writes what stands between two
// texts, for editors.

#include "saker/server/http/router.h"
#include "saker/server/models/model_catalog.h"

#include <memory>

namespace saker::server::native {

void add_routes(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog);

}  // namespace saker::server::native
