// SPDX-License-Identifier: Apache-2.0
#pragma once

// Events of a generation as answers of POST /v1/chat/completions, in chunks or whole.

#include "saker/server/api/openai/chat_request.h"
#include "saker/server/turns/turn.h"

#include <memory>

namespace saker::text {
class Tokenizer;
}

namespace saker::server::openai {

// `tokenizer`: for the texts of alternatives; outlives the encoder.
std::unique_ptr<Encoder> chat_encoder(
    const Answering& answering, int choices, const text::Tokenizer* tokenizer
);

}  // namespace saker::server::openai
