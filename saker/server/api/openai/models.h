// SPDX-License-Identifier: Apache-2.0
#pragma once

// The list of models, in the shapes of OpenAI, vLLM and llama-server at once.

#include "saker/base/json/json.h"
#include "saker/server/turns/served_model.h"

#include <string_view>

namespace saker::server::openai {

Json models_json(const ServedModel& model);
// One model. Throws a 404.
Json model_json(const ServedModel& model, std::string_view name);

}  // namespace saker::server::openai
