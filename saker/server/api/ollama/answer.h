// SPDX-License-Identifier: Apache-2.0
#pragma once

// Events of a generation as answers of POST /api/chat and POST /api/generate.

#include "saker/base/json/json.h"
#include "saker/server/api/ollama/request.h"
#include "saker/server/turns/turn.h"
#include "saker/text/tokenizer.h"

#include <memory>
#include <string_view>

namespace saker::server::ollama {

// `tokenizer` names alternatives of tokens; it may be null.
std::unique_ptr<Encoder> answer_encoder(
    const OllamaRequest& request, const text::Tokenizer* tokenizer
);

// The answer to a request without a prompt.
Json loaded_json(const OllamaRequest& request, std::string_view reason);

}  // namespace saker::server::ollama
