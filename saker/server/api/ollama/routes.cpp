// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/ollama/routes.h"

#include "saker/server/api/ollama/answer.h"
#include "saker/server/api/ollama/embed.h"
#include "saker/server/api/ollama/model_facts.h"
#include "saker/server/api/ollama/request.h"
#include "saker/server/models/keep_alive.h"
#include "saker/server/models/model_route.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/turn.h"
#include "saker/server/turns/wire.h"

#include <string>
#include <utility>
#include <vector>

namespace saker::server::ollama {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

void answer(const ExchangePtr& exchange, const Json& body, const ModelPtr& model, Form form) {
  const OllamaRequest request = read_request(body, form, *model);
  if (request.only_loads) {
    return exchange->respond(json_response(loaded_json(request.model, form, "load")));
  }
  std::vector<engine::Stream> streams;
  streams.push_back(submit(*exchange, *model, request.request));
  run_turn(
      exchange,
      model,
      std::move(streams),
      1,
      answer_encoder(request, model->model().tokenizer(), model->waited()),
      {.streams = request.streams,
       .head = {.content_type = request.streams ? "application/x-ndjson" : "application/json"},
       .ping = "",
       .failed = error_response}
  );
}

// A request without a prompt that wants its model to stay for no time unloads it.
bool unload(const ExchangePtr& exchange, const Json& body, ModelCatalog& catalog, Form form) {
  constexpr engine::KeepAlive kNoTime = std::chrono::milliseconds(0);
  if (!only_loads(body, form) || read_keep_alive(body) != std::optional(kNoTime)) {
    return false;
  }
  Fields fields(body);
  fields.required("model");
  const std::string name = *fields.text("model");
  catalog.unload(name);
  exchange->respond(json_response(loaded_json(name, form, "unload")));
  return true;
}

void add_answers(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog) {
  // Streams are lines of JSON, which have no comments.
  const ErrorShape shape = {.response = error_response};
  const auto add = [&](const std::string& path, Form form) {
    const auto answer_form =
        [form](const ExchangePtr& exchange, const Json& body, const ModelPtr& model) {
          answer(exchange, body, model, form);
        };
    const auto unload_form = [catalog, form](const ExchangePtr& exchange, const Json& body) {
      return unload(exchange, body, *catalog, form);
    };
    router.add("POST", path, with_model(catalog, shape, answer_form, unload_form));
  };
  add("/api/chat", Form::kChat);
  add("/api/generate", Form::kGenerate);
  const auto add_vectors = [&](const std::string& path, auto read) {
    const auto answer_vectors =
        [read](const ExchangePtr& exchange, const Json& body, const ModelPtr& model) {
          exchange->respond(json_response(read(body, *model)));
        };
    router.add("POST", path, with_model(catalog, shape, answer_vectors));
  };
  add_vectors("/api/embed", embed);
  add_vectors("/api/embeddings", old_embedding);
}

}  // namespace

http::Response error_response(const ApiError& error) {
  http::Response response = json_response({{"error", error.what()}}, error.status());
  if (error.retry_after() > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(error.retry_after()));
  }
  return response;
}

void add_routes(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog) {
  add_answers(router, catalog);
  router.add("GET", "/api/tags", [catalog](const ExchangePtr& exchange) {
    exchange->respond(json_response(tags_json(*catalog)));
  });
  router.add("GET", "/api/ps", [catalog](const ExchangePtr& exchange) {
    exchange->respond(json_response(running_json(*catalog)));
  });
  router.add("POST", "/api/show", [catalog](const ExchangePtr& exchange) {
    exchange->respond(json_response(show_json(parse_body(exchange->request().body), *catalog)));
  });
  router.add("GET", "/api/version", [](const ExchangePtr& exchange) {
    exchange->respond(json_response({{"version", SAKER_VERSION}}));
  });
  for (const std::string name : {"create", "copy", "push"}) {
    router.add("POST", "/api/" + name, [](const ExchangePtr&) {
      throw ApiError(501, "this server makes no models; see saker create");
    });
  }
}

}  // namespace saker::server::ollama
