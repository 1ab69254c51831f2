// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/responses/routes.h"

#include "saker/base/utf8.h"
#include "saker/server/api/openai/errors.h"
#include "saker/server/api/responses/answer.h"
#include "saker/server/api/responses/request.h"
#include "saker/server/api/responses/store.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/turn.h"
#include "saker/server/turns/wire.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::server::responses {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;
using ModelPtr = std::shared_ptr<const ServedModel>;
using StorePtr = std::shared_ptr<ResponseStore>;

constexpr std::string_view kInputItems = "/input_items";

void answer(const ExchangePtr& exchange, const ModelPtr& model, const StorePtr& store) {
  ResponsesRequest request = read_responses(parse_body(exchange->request().body), *model, *store);
  std::vector<engine::Stream> streams;
  streams.push_back(submit(*exchange, *model, request.request));
  const bool is_stream = request.streams;
  run_turn(
      exchange,
      model,
      std::move(streams),
      1,
      response_encoder(std::move(request), store, model->model().tokenizer()),
      {.streams = is_stream,
       .head = is_stream ? sse_head() : http::Response{},
       .ping = std::string(kSsePing),
       .failed = openai::error_response}
  );
}

void count(const ExchangePtr& exchange, const ModelPtr& model, const StorePtr& store) {
  const ResponsesRequest request =
      read_responses(parse_body(exchange->request().body), *model, *store);
  exchange->respond(json_response(
      {{"object", "response.input_tokens"},
       {"input_tokens", model->model().prompt_tokens(request.request).size()}}
  ));
}

StoredResponse find(ResponseStore& store, const std::string& id) {
  auto found = store.get(id);
  if (!found) {
    throw ApiError(404, fmt::format("the response {} is not here", quote(id)));
  }
  return *std::move(found);
}

// The response, or the items of its input.
void show(const ExchangePtr& exchange, ResponseStore& store, std::string name) {
  if (!name.ends_with(kInputItems)) {
    return exchange->respond(json_response(find(store, name).response));
  }
  name.resize(name.size() - kInputItems.size());
  exchange->respond(
      json_response({{"object", "list"}, {"data", find(store, name).input}, {"has_more", false}})
  );
}

void remove(const ExchangePtr& exchange, ResponseStore& store, const std::string& name) {
  if (!store.erase(name)) {
    throw ApiError(404, fmt::format("the response {} is not here", quote(name)));
  }
  exchange->respond(json_response({{"id", name}, {"object", "response.deleted"}, {"deleted", true}})
  );
}

}  // namespace

void add_routes(http::Router& router, const ModelPtr& model) {
  const auto store = std::make_shared<ResponseStore>();
  const std::string path = "/v1/responses";
  router.add("POST", path, [model, store](const ExchangePtr& exchange) {
    answer(exchange, model, store);
  });
  router.add("POST", path + "/input_tokens", [model, store](const ExchangePtr& exchange) {
    count(exchange, model, store);
  });
  const std::size_t start = path.size() + 1;
  router.add("GET", path + "/*", [store, start](const ExchangePtr& exchange) {
    show(exchange, *store, exchange->request().path.substr(start));
  });
  router.add("DELETE", path + "/*", [store, start](const ExchangePtr& exchange) {
    remove(exchange, *store, exchange->request().path.substr(start));
  });
}

}  // namespace saker::server::responses
