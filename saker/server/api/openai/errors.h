// SPDX-License-Identifier: Apache-2.0
#pragma once

// Errors in OpenAI's shape: {"error": {"message", "type", "param", "code"}}.

#include "saker/base/json/json.h"
#include "saker/server/http/message.h"
#include "saker/server/turns/error_shape.h"

namespace saker::server::openai {

Json error_json(const ApiError& error);
http::Response error_response(const ApiError& error);
std::string error_event(const ApiError& error);

inline constexpr ErrorShape kErrorShape = {error_response, error_event};

}  // namespace saker::server::openai
