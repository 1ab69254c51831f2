// SPDX-License-Identifier: Apache-2.0
#pragma once

// Facts about models in Ollama's shapes. They load none.

#include "saker/base/json/json.h"
#include "saker/server/models/model_catalog.h"

namespace saker::server::ollama {

// GET /api/tags: all models.
Json tags_json(const ModelCatalog& catalog);
// GET /api/ps: those that are loaded.
Json running_json(const ModelCatalog& catalog);
// POST /api/show: one. Throws a 400 or 404.
Json show_json(const Json& body, const ModelCatalog& catalog);

}  // namespace saker::server::ollama
