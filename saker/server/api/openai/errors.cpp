// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/openai/errors.h"

#include "saker/server/turns/wire.h"

#include <string>
#include <string_view>

namespace saker::server::openai {
namespace {

std::string_view type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "unavailable_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace

Json error_json(const ApiError& error) {
  Json inner = {
      {"message", error.what()},
      {"type", type_of(error.status())},
      {"param", or_null(error.param())},
      {"code", or_null(error.code())},
  };
  if (error.context_tokens() > 0) {
    inner["n_prompt_tokens"] = error.prompt_tokens();
    inner["n_ctx"] = error.context_tokens();
  }
  return {{"error", std::move(inner)}};
}

http::Response error_response(const ApiError& error) {
  http::Response response = json_response(error_json(error), error.status());
  if (error.retry_after() > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(error.retry_after()));
  } else if (error.status() < 500 && error.status() != 429) {
    response.headers.emplace_back("x-should-retry", "false");
  }
  return response;
}

std::string error_event(const ApiError& error) {
  return sse(error_json(error));
}

}  // namespace saker::server::openai
