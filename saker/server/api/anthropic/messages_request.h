// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads requests of POST /v1/messages: blocks become messages as chat templates take them.

#include "saker/base/json/json.h"
#include "saker/engine/request.h"
#include "saker/server/turns/served_model.h"

#include <string>

namespace saker::server::anthropic {

struct MessagesRequest {
  engine::Request request;
  std::string model;  // As it was asked for.
  bool streams = false;
};

// For a count of tokens max_tokens may be missing.
enum class Purpose { kAnswer, kCount };

// Throws a 400, or a 404 for an unknown model.
MessagesRequest read_messages(const Json& body, const ServedModel& model, Purpose purpose);

}  // namespace saker::server::anthropic
