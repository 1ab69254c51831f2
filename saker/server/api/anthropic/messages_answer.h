// SPDX-License-Identifier: Apache-2.0
#pragma once

// Events of a generation as answers of POST /v1/messages, streamed or whole.

#include "saker/server/turns/turn.h"

#include <cstdint>
#include <memory>
#include <string>

namespace saker::server::anthropic {

struct MessageFacts {
  std::string model;  // As it was asked for.
  std::int64_t prompt_tokens = 0;
  std::int64_t context = 0;  // In tokens; 0: none.
};

std::unique_ptr<Encoder> message_stream(MessageFacts facts);
std::unique_ptr<Encoder> whole_message(MessageFacts facts);

}  // namespace saker::server::anthropic
