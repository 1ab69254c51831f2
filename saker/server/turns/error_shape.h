// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a dialect says that a request failed.

#include "saker/server/http/message.h"
#include "saker/server/turns/api_error.h"

#include <string>

namespace saker::server {

struct ErrorShape {
  http::Response (*response)(const ApiError& error) = nullptr;
  // In a text/event-stream that has begun. Null: streams of the dialect have no comments.
  std::string (*in_stream)(const ApiError& error) = nullptr;
};

}  // namespace saker::server
