// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/ollama/routes.h"

#include "saker/server/api/ollama/answer.h"
#include "saker/server/api/ollama/embed.h"
#include "saker/server/api/ollama/request.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/turn.h"
#include "saker/server/turns/wire.h"
#include "saker/text/chat_template.h"
#include "saker/text/fill_in_middle.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace saker::server::ollama {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;
using ModelPtr = std::shared_ptr<const ServedModel>;

void answer(const ExchangePtr& exchange, const ModelPtr& model, Form form) {
  const OllamaRequest request = read_request(parse_body(exchange->request().body), form, *model);
  if (request.only_loads) {
    return exchange->respond(json_response(loaded_json(request, request.unloads ? "unload" : "load")
    ));
  }
  std::vector<engine::Stream> streams;
  streams.push_back(submit(*exchange, *model, request.request));
  run_turn(
      exchange,
      model,
      std::move(streams),
      1,
      answer_encoder(request, model->model().tokenizer()),
      {.streams = request.streams,
       .head = {.content_type = request.streams ? "application/x-ndjson" : "application/json"},
       .ping = "",
       .failed = error_response}
  );
}

Json details(const ServedModel& model) {
  const std::string& family = model.model().facts().model_type;
  return {
      {"parent_model", ""},
      {"format", "safetensors"},
      {"family", family},
      {"families", Json::array({family})},
      {"parameter_size", ""},
      {"quantization_level", ""},
  };
}

Json capabilities(const ServedModel& model) {
  Json list = Json::array({"completion"});
  const text::Tokenizer* tokenizer = model.model().tokenizer();
  if (tokenizer != nullptr && text::fill_in_middle_prompt(*tokenizer, "", "")) {
    list.push_back("insert");
  }
  if (model.model().chat_template() != nullptr) {
    list.push_back("tools");
    if (model.model().chat_template()->switches_thinking()) {
      list.push_back("thinking");
    }
  }
  return list;
}

Json card(const ServedModel& model, const std::string& name) {
  const engine::ModelFacts& facts = model.model().facts();
  return {
      {"name", name},
      {"model", name},
      {"modified_at",
       utc_time(std::chrono::system_clock::time_point(std::chrono::seconds(model.created())))},
      {"size", facts.weight_bytes},
      {"digest", ""},
      {"details", details(model)},
  };
}

Json tags(const ServedModel& model) {
  Json models = Json::array();
  for (const std::string& name : model.names().names) {
    models.push_back(card(model, name));
  }
  for (const engine::NamedAdapter& adapter : model.names().adapters) {
    models.push_back(card(model, adapter.name));
  }
  return {{"models", std::move(models)}};
}

Json running(const ServedModel& model) {
  Json one = card(model, model.name());
  one["expires_at"] = "2999-01-01T00:00:00Z";  // It stays.
  one["size_vram"] = 0;
  one["context_length"] = model.context();
  return {{"models", Json::array({std::move(one)})}};
}

Json show(const Json& body, const ServedModel& model) {
  Fields fields(body);
  const auto old_name = fields.text("name");
  const std::string name = fields.text("model").value_or(old_name.value_or(""));
  find_model(model, name);
  const engine::ModelFacts& facts = model.model().facts();
  return {
      {"modelfile", ""},
      {"parameters", ""},
      {"template", ""},
      {"details", details(model)},
      {"model_info",
       {{"general.architecture", facts.model_type},
        {facts.model_type + ".context_length", facts.context_length},
        {facts.model_type + ".vocab_size", facts.vocab_size}}},
      {"capabilities", capabilities(model)},
  };
}

}  // namespace

http::Response error_response(const ApiError& error) {
  http::Response response = json_response({{"error", error.what()}}, error.status());
  if (error.retry_after() > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(error.retry_after()));
  }
  return response;
}

void add_routes(http::Router& router, const ModelPtr& model) {
  router.add("POST", "/api/chat", [model](const ExchangePtr& exchange) {
    answer(exchange, model, Form::kChat);
  });
  router.add("POST", "/api/generate", [model](const ExchangePtr& exchange) {
    answer(exchange, model, Form::kGenerate);
  });
  router.add("GET", "/api/tags", [model](const ExchangePtr& exchange) {
    exchange->respond(json_response(tags(*model)));
  });
  router.add("GET", "/api/ps", [model](const ExchangePtr& exchange) {
    exchange->respond(json_response(running(*model)));
  });
  router.add("POST", "/api/show", [model](const ExchangePtr& exchange) {
    exchange->respond(json_response(show(parse_body(exchange->request().body), *model)));
  });
  router.add("POST", "/api/embed", [model](const ExchangePtr& exchange) {
    exchange->respond(json_response(embed(parse_body(exchange->request().body), *model)));
  });
  router.add("POST", "/api/embeddings", [model](const ExchangePtr& exchange) {
    exchange->respond(json_response(old_embedding(parse_body(exchange->request().body), *model)));
  });
  router.add("GET", "/api/version", [](const ExchangePtr& exchange) {
    exchange->respond(json_response({{"version", SAKER_VERSION}}));
  });
  for (const std::string name : {"create", "copy", "push", "pull"}) {
    router.add("POST", "/api/" + name, [](const ExchangePtr&) {
      throw ApiError(501, "this server has the models that it was started with");
    });
  }
}

}  // namespace saker::server::ollama
