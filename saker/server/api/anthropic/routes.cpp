// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/anthropic/routes.h"

#include "saker/server/api/anthropic/messages_answer.h"
#include "saker/server/api/anthropic/messages_request.h"
#include "saker/server/models/model_route.h"
#include "saker/server/turns/turn.h"
#include "saker/server/turns/wire.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::server::anthropic {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

std::string_view type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

void answer(const ExchangePtr& exchange, const Json& body, const ModelPtr& model) {
  const MessagesRequest messages = read_messages(body, *model, Purpose::kAnswer);
  std::vector<engine::Stream> streams;
  streams.push_back(submit(*exchange, *model, messages.request));
  MessageFacts facts{.model = messages.model, .context = model->context()};
  if (messages.streams) {  // Its first event has the count.
    facts.prompt_tokens =
        static_cast<std::int64_t>(model->model().prompt_tokens(messages.request).size());
  }
  run_turn(
      exchange,
      model,
      std::move(streams),
      1,
      messages.streams ? message_stream(std::move(facts)) : whole_message(std::move(facts)),
      {.streams = messages.streams,
       .head = messages.streams ? sse_head() : http::Response{},
       .ping = sse("ping", {{"type", "ping"}}),
       .failed = error_response}
  );
}

void count(const ExchangePtr& exchange, const Json& body, const ModelPtr& model) {
  const MessagesRequest messages = read_messages(body, *model, Purpose::kCount);
  exchange->respond(
      json_response({{"input_tokens", model->model().prompt_tokens(messages.request).size()}})
  );
}

Json card_json(const engine::ModelDetails& details, const std::string& name) {
  return {
      {"type", "model"},
      {"id", name},
      {"display_name", name},
      {"created_at",
       utc_time(std::chrono::system_clock::time_point(std::chrono::seconds(details.modified)))},
      {"max_input_tokens", details.context_length},
      {"max_tokens", details.context_length},
  };
}

}  // namespace

Json error_json(const ApiError& error) {
  return {
      {"type", "error"},
      {"error", {{"type", type_of(error.status())}, {"message", error.what()}}},
  };
}

http::Response error_response(const ApiError& error) {
  http::Response response = json_response(error_json(error), error.status());
  if (error.retry_after() > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(error.retry_after()));
  }
  return response;
}

std::string error_event(const ApiError& error) {
  return sse("error", error_json(error));
}

Json models_json(const ModelCatalog& catalog) {
  Json data = Json::array();
  for (const ModelCard& card : catalog.cards()) {
    for (const std::string& name : card.names->names) {
      data.push_back(card_json(*card.details, name));
    }
    for (const engine::NamedAdapter& adapter : card.names->adapters) {
      data.push_back(card_json(*card.details, adapter.name));
    }
  }
  const Json first = data.empty() ? Json(nullptr) : data.front()["id"];
  const Json last = data.empty() ? Json(nullptr) : data.back()["id"];
  return {{"data", std::move(data)}, {"has_more", false}, {"first_id", first}, {"last_id", last}};
}

Json model_json(const ModelCatalog& catalog, std::string_view name) {
  const ModelCard card = catalog.find(name);
  const auto found = find_name(*card.names, name);
  return card_json(*card.details, found ? found->name : card.name());
}

void add_routes(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog) {
  const ErrorShape shape = {error_response, error_event};
  router.add("POST", "/v1/messages", with_model(catalog, shape, answer));
  router.add("POST", "/v1/messages/count_tokens", with_model(catalog, shape, count));
}

}  // namespace saker::server::anthropic
