// SPDX-License-Identifier: Apache-2.0
#pragma once

// Errors in OpenAI's shape: {"error": {"message", "type", "param", "code"}}.

#include "saker/base/json/json.h"
#include "saker/server/http/message.h"
#include "saker/server/turns/api_error.h"

namespace saker::server::openai {

Json error_json(const ApiError& error);
http::Response error_response(const ApiError& error);

}  // namespace saker::server::openai
