// SPDX-License-Identifier: Apache-2.0
#pragma once

// The list of models, in the shapes of OpenAI, vLLM and llama-server at once. It loads none.

#include "saker/base/json/json.h"
#include "saker/server/models/model_catalog.h"

#include <string_view>

namespace saker::server::openai {

Json models_json(const ModelCatalog& catalog);
// One model. Throws a 404.
Json model_json(const ModelCatalog& catalog, std::string_view name);

}  // namespace saker::server::openai
