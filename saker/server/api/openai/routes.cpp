// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/openai/routes.h"

#include "saker/server/api/openai/chat_answer.h"
#include "saker/server/api/openai/chat_request.h"
#include "saker/server/api/openai/completion.h"
#include "saker/server/api/openai/embeddings.h"
#include "saker/server/api/openai/errors.h"
#include "saker/server/api/openai/models.h"
#include "saker/server/api/openai/prompt_logprobs.h"
#include "saker/server/models/model_route.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/prompt_scores.h"
#include "saker/server/turns/turn.h"
#include "saker/server/turns/wire.h"
#include "saker/text/tokenizer.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::server::openai {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

Delivery delivery_of(const Answering& answering) {
  return {
      .streams = answering.streams,
      .head = answering.streams ? sse_head() : http::Response{},
      .ping = std::string(kSsePing),
      .failed = error_response,
  };
}

void answer_chat(const ExchangePtr& exchange, const Json& body, const ModelPtr& model) {
  ChatRequest chat = read_chat(body, *model);
  if (chat.answering.prompt_top) {
    const engine::Request& request = chat.request;
    chat.answering.prompt_logprobs =
        prompt_logprobs({request.prompt}, request.placement, *chat.answering.prompt_top, *model)
            .front();
  }
  std::vector<engine::Stream> streams;
  streams.push_back(submit(*exchange, *model, chat.request));
  const int choices = chat.request.output.n;
  run_turn(
      exchange,
      model,
      std::move(streams),
      choices,
      chat_encoder(chat.answering, choices, model->model().tokenizer()),
      delivery_of(chat.answering)
  );
}

// The prompts as they are echoed, with log-probabilities if they were asked for.
std::vector<EchoedPrompt> echo(const CompletionRequest& completion, const ServedModel& model) {
  std::vector<EchoedPrompt> echoed;
  std::vector<std::vector<std::int32_t>> tokens;
  for (const engine::Prompt& prompt : completion.prompts) {
    engine::Request request;
    request.prompt = prompt;
    tokens.push_back(model.model().prompt_tokens(request));
    const text::Tokenizer* tokenizer = model.model().tokenizer();
    const bool has_text = !prompt.text && tokenizer != nullptr;
    echoed.push_back(
        {.text = has_text ? tokenizer->decode(tokens.back()) : prompt.text.value_or(""),
         .tokens = tokens.back()}
    );
  }
  if (completion.answering.top_logprobs) {
    auto scores = score_prompts(
        model.model(),
        tokens,
        {.top = *completion.answering.top_logprobs,
         .adapter = completion.request.placement.adapter,
         .stop = model.stop()}
    );
    for (std::size_t i = 0; i < echoed.size(); ++i) {
      echoed[i].logprobs = std::move(scores[i].logprobs);
      echoed[i].top = std::move(scores[i].top);
    }
  }
  return echoed;
}

void answer_completion(const ExchangePtr& exchange, const Json& body, const ModelPtr& model) {
  CompletionRequest completion = read_completion(body, *model);
  std::vector<EchoedPrompt> echoed;
  if (completion.echoes) {
    echoed = echo(completion, *model);
  }
  if (completion.answering.prompt_top) {
    completion.prompt_logprobs = prompt_logprobs(
        completion.prompts, completion.request.placement, *completion.answering.prompt_top, *model
    );
  }
  auto encoder = completion_encoder(completion, std::move(echoed), model->model().tokenizer());
  if (completion.has_no_answer) {
    return exchange->respond({.body = encoder->end()});
  }
  std::vector<engine::Stream> streams;
  for (const engine::Prompt& prompt : completion.prompts) {
    engine::Request request = completion.request;
    request.prompt = prompt;
    streams.push_back(submit(*exchange, *model, request));
  }
  run_turn(
      exchange,
      model,
      std::move(streams),
      completion.request.output.n,
      std::move(encoder),
      delivery_of(completion.answering)
  );
}

// A prompt's tokens, for routers that look for a replica with the same ones in its cache.
Json rendered(const engine::Request& request, const ServedModel& model) {
  return {{"token_ids", model.model().prompt_tokens(request)}};
}

Json render_chat(const Json& body, const ServedModel& model) {
  return rendered(read_chat(body, model).request, model);
}

Json render_completion(const Json& body, const ServedModel& model) {
  Json list = Json::array();
  for (const engine::Prompt& prompt : read_completion(body, model).prompts) {
    list.push_back(rendered({.prompt = prompt}, model));
  }
  return list;
}

}  // namespace

void add_routes(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog) {
  const auto add = [&](const std::string& path, ModelAnswer answer) {
    router.add("POST", path, with_model(catalog, kErrorShape, std::move(answer)));
  };
  for (const std::string prefix : {"/v1", ""}) {
    add(prefix + "/chat/completions", answer_chat);
    add(prefix + "/completions", answer_completion);
    add(prefix + "/chat/completions/render",
        [](const ExchangePtr& exchange, const Json& body, const ModelPtr& model) {
          exchange->respond(json_response(render_chat(body, *model)));
        });
    add(prefix + "/completions/render",
        [](const ExchangePtr& exchange, const Json& body, const ModelPtr& model) {
          exchange->respond(json_response(render_completion(body, *model)));
        });
    add(prefix + "/embeddings",
        [](const ExchangePtr& exchange, const Json& body, const ModelPtr& model) {
          exchange->respond(json_response(embeddings(body, *model)));
        });
    router.add("GET", prefix + "/models", [catalog](const ExchangePtr& exchange) {
      exchange->respond(json_response(models_json(*catalog)));
    });
    // Names have slashes, encoded or not.
    const std::string below = prefix + "/models/";
    router.add("GET", below + "*", [catalog, below](const ExchangePtr& exchange) {
      const std::string_view name = std::string_view(exchange->request().path).substr(below.size());
      exchange->respond(json_response(model_json(*catalog, name)));
    });
  }
}

}  // namespace saker::server::openai
