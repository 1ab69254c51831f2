// SPDX-License-Identifier: Apache-2.0
#pragma once

// Log-probabilities of tokens in the form that the APIs for chats share.

#include "saker/base/json/json.h"
#include "saker/engine/event.h"
#include "saker/text/tokenizer.h"

#include <vector>

namespace saker::server {

// A list of {"token", "logprob", "bytes", "top_logprobs"}. `bytes` lets clients join characters
// that tokens divide. Without a tokenizer the texts of alternatives are empty.
Json token_logprobs(
    const std::vector<engine::TokenEvent>& tokens, const text::Tokenizer* tokenizer
);

}  // namespace saker::server
