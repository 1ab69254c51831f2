// SPDX-License-Identifier: Apache-2.0
#pragma once

// Events of a generation as answers of POST /v1/responses, streamed or whole.

#include "saker/server/api/responses/request.h"
#include "saker/server/api/responses/store.h"
#include "saker/server/turns/turn.h"
#include "saker/text/tokenizer.h"

#include <memory>

namespace saker::server::responses {

// Puts the finished response into the store if the request asks for it. `tokenizer` names
// alternatives of tokens; it may be null.
std::unique_ptr<Encoder> response_encoder(
    ResponsesRequest request, std::shared_ptr<ResponseStore> store, const text::Tokenizer* tokenizer
);

}  // namespace saker::server::responses
