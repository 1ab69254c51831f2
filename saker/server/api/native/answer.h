// SPDX-License-Identifier: Apache-2.0
#pragma once

// Answers of llama-server's /completion and /infill: one object for each prompt, or events of a stream, of which the last
// has `stop`.

#include "saker/server/api/native/request.h"
#include "saker/server/turns/turn.h"
#include "saker/text/tokenizer.h"

#include <memory>

namespace saker::server::native {

std::unique_ptr<Encoder> answer_encoder(
    const NativeRequest& request, const text::Tokenizer* tokenizer
);

}  // namespace saker::server::native
