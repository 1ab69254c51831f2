// SPDX-License-Identifier: Apache-2.0
#pragma once

// POST /v1/embeddings: vectors of texts, as numbers or in base64.

#include "saker/base/json/json.h"
#include "saker/engine/embedding.h"
#include "saker/server/turns/served_model.h"

#include <string_view>
#include <vector>

namespace saker::server::openai {

// The answer to a body. Waits for the engine. Throws a 400, or a 404 for an unknown model.
Json embeddings(const Json& body, const ServedModel& model);

// A text, a list of token ids, or a list of these. Throws a 400 that names the member.
std::vector<engine::EmbedInput> read_inputs(
    const Json& given, std::string_view name, const ServedModel& model
);

}  // namespace saker::server::openai
