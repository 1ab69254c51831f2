// SPDX-License-Identifier: Apache-2.0
#include "saker/server/dialects.h"

#include "saker/server/api/anthropic/routes.h"
#include "saker/server/api/extras/routes.h"
#include "saker/server/api/ollama/routes.h"
#include "saker/server/api/openai/errors.h"
#include "saker/server/api/openai/models.h"
#include "saker/server/api/openai/routes.h"
#include "saker/server/api/responses/routes.h"
#include "saker/server/turns/wire.h"

#include <string_view>

namespace saker::server {
namespace {

constexpr Dialect kOpenAi = {"x-request-id", openai::error_response};
constexpr Dialect kAnthropic = {"request-id", anthropic::error_response};
constexpr Dialect kOllama = {"x-request-id", ollama::error_response};

bool is_anthropic(const http::Request& request) {
  return request.path.starts_with("/v1/messages") || !request.header("anthropic-version").empty();
}

}  // namespace

const Dialect& dialect_of(const http::Request& request) {
  if (request.path.starts_with("/api/")) {
    return kOllama;
  }
  return is_anthropic(request) ? kAnthropic : kOpenAi;
}

void add_dialects(http::Router& router, const std::shared_ptr<const ServedModel>& model) {
  openai::add_routes(router, model);
  anthropic::add_routes(router, model);
  ollama::add_routes(router, model);
  responses::add_routes(router, model);
  extras::add_routes(router, model);
  // One path, two shapes: Anthropic's clients name their version.
  router.add("GET", "/v1/models", [model](const std::shared_ptr<http::Exchange>& exchange) {
    exchange->respond(json_response(
        is_anthropic(exchange->request()) ? anthropic::models_json(*model)
                                          : openai::models_json(*model)
    ));
  });
}

}  // namespace saker::server
