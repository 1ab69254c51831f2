// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/anthropic/routes.h"

#include "saker/server/api/anthropic/messages_answer.h"
#include "saker/server/api/anthropic/messages_request.h"
#include "saker/server/turns/fields.h"
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
using ModelPtr = std::shared_ptr<const ServedModel>;

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

void answer(const ExchangePtr& exchange, const ModelPtr& model) {
  const MessagesRequest messages =
      read_messages(parse_body(exchange->request().body), *model, Purpose::kAnswer);
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

void count(const ExchangePtr& exchange, const ModelPtr& model) {
  const MessagesRequest messages =
      read_messages(parse_body(exchange->request().body), *model, Purpose::kCount);
  exchange->respond(
      json_response({{"input_tokens", model->model().prompt_tokens(messages.request).size()}})
  );
}

Json card(const ServedModel& model, const std::string& name) {
  return {
      {"type", "model"},
      {"id", name},
      {"display_name", name},
      {"created_at",
       utc_time(std::chrono::system_clock::time_point(std::chrono::seconds(model.created())))},
      {"max_input_tokens", model.context()},
      {"max_tokens", model.context()},
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

Json models_json(const ServedModel& model) {
  Json data = Json::array();
  for (const std::string& name : model.names().names) {
    data.push_back(card(model, name));
  }
  for (const engine::NamedAdapter& adapter : model.names().adapters) {
    data.push_back(card(model, adapter.name));
  }
  const Json first = data.front()["id"];
  const Json last = data.back()["id"];
  return {{"data", std::move(data)}, {"has_more", false}, {"first_id", first}, {"last_id", last}};
}

void add_routes(http::Router& router, const ModelPtr& model) {
  router.add("POST", "/v1/messages", [model](const ExchangePtr& exchange) {
    answer(exchange, model);
  });
  router.add("POST", "/v1/messages/count_tokens", [model](const ExchangePtr& exchange) {
    count(exchange, model);
  });
}

}  // namespace saker::server::anthropic
