// SPDX-License-Identifier: Apache-2.0
#include "saker/server/dialects.h"

#include "saker/server/api/anthropic/routes.h"
#include "saker/server/api/extras/routes.h"
#include "saker/server/api/native/routes.h"
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

void add_dialects(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog) {
  openai::add_routes(router, catalog);
  anthropic::add_routes(router, catalog);
  native::add_routes(router, catalog);
  ollama::add_routes(router, catalog);
  responses::add_routes(router, catalog);
  extras::add_routes(router, catalog);
  // One path, two shapes: Anthropic's clients name their version.
  router.add("GET", "/v1/models", [catalog](const std::shared_ptr<http::Exchange>& exchange) {
    exchange->respond(json_response(
        is_anthropic(exchange->request()) ? anthropic::models_json(*catalog)
                                          : openai::models_json(*catalog)
    ));
  });
  router.add("GET", "/v1/models/*", [catalog](const std::shared_ptr<http::Exchange>& exchange) {
    constexpr std::string_view kBelow = "/v1/models/";
    const std::string_view name = std::string_view(exchange->request().path).substr(kBelow.size());
    exchange->respond(json_response(
        is_anthropic(exchange->request()) ? anthropic::model_json(*catalog, name)
                                          : openai::model_json(*catalog, name)
    ));
  });
}

}  // namespace saker::server
