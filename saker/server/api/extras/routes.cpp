// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/extras/routes.h"

#include "saker/base/error.h"
#include "saker/server/api/extras/rerank.h"
#include "saker/server/api/extras/scores.h"
#include "saker/server/api/openai/chat_request.h"
#include "saker/server/api/openai/errors.h"
#include "saker/server/http/query.h"
#include "saker/server/models/model_route.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/wire.h"
#include "saker/text/chat_template.h"
#include "saker/text/tokenizer.h"

#include <string>
#include <utility>
#include <vector>

namespace saker::server::extras {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

const text::Tokenizer& tokenizer_of(const ServedModel& model) {
  const text::Tokenizer* tokenizer = model.model().tokenizer();
  if (tokenizer == nullptr) {
    throw ApiError(400, "the model has no tokenizer").with_code("unsupported_value");
  }
  return *tokenizer;
}

// The prompt of a chat's body.
std::string rendered(Fields& fields, const ServedModel& model) {
  const Json messages = openai::read_messages(fields.required("messages"), "messages");
  if (model.model().chat_template() == nullptr) {
    throw ApiError(400, "the model has no chat template").with_code("unsupported_value");
  }
  text::RenderOptions options;
  options.tools = openai::read_tools(fields).functions;
  options.continues_last = fields.flag("continue_final_message").value_or(false);
  options.add_generation_prompt = fields.flag("add_generation_prompt").value_or(true);
  if (const Json* kwargs = fields.object("chat_template_kwargs")) {
    options.template_kwargs = *kwargs;
  }
  fields.refuse({"chat_template"});
  return model.model().chat_template()->render(messages, options);
}

Json pieces_of(const std::vector<std::int32_t>& tokens, const text::Tokenizer& tokenizer) {
  Json pieces = Json::array();
  for (const std::int32_t id : tokens) {
    pieces.push_back({{"id", id}, {"piece", tokenizer.token_bytes(id)}});
  }
  return pieces;
}

// llama-server's form has `content`, vLLM's `prompt` or `messages`.
Json tokenize(const Json& body, const ServedModel& model) {
  Fields fields(body);
  model.find(fields.text("model").value_or(""));
  const text::Tokenizer& tokenizer = tokenizer_of(model);
  if (const auto content = fields.text("content")) {
    const bool adds = fields.flag("add_special").value_or(false);
    const auto tokens = tokenizer.encode(*content, {.add_special_tokens = adds});
    if (!fields.flag("parse_special").value_or(true)) {
      fields.fail("parse_special", "special tokens are always read");
    }
    const bool with_pieces = fields.flag("with_pieces").value_or(false);
    return {{"tokens", with_pieces ? pieces_of(tokens, tokenizer) : Json(tokens)}};
  }
  std::vector<std::int32_t> tokens;
  if (fields.has("messages")) {
    tokens = tokenizer.encode(
        rendered(fields, model),
        {.add_special_tokens = fields.flag("add_special_tokens").value_or(false)}
    );
  } else {
    fields.required("prompt");
    tokens = tokenizer.encode(
        *fields.text("prompt"),
        {.add_special_tokens = fields.flag("add_special_tokens").value_or(true)}
    );
  }
  Json result = {{"count", tokens.size()}, {"max_model_len", model.context()}, {"tokens", tokens}};
  if (fields.flag("return_token_strs").value_or(false)) {
    Json& texts = result["token_strs"] = Json::array();
    for (const std::int32_t id : tokens) {
      texts.push_back(tokenizer.token_piece(id));
    }
  }
  fields.log_unknown("tokenize");
  return result;
}

Json detokenize(const Json& body, const ServedModel& model) {
  Fields fields(body);
  model.find(fields.text("model").value_or(""));
  fields.required("tokens");
  std::vector<std::int32_t> ids;
  for (const Json& id : *fields.list("tokens")) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
        id.get<std::int64_t>() > std::numeric_limits<std::int32_t>::max()) {
      fields.fail("tokens", "expected token ids, got " + describe_json(id));
    }
    ids.push_back(id.get<std::int32_t>());
  }
  const std::string text = tokenizer_of(model).decode(ids);
  return {{"content", text}, {"prompt", text}};
}

Json apply_template(const Json& body, const ServedModel& model) {
  Fields fields(body);
  model.find(fields.text("model").value_or(""));
  return {{"prompt", rendered(fields, model)}};
}

Json props(const ModelCard& card) {
  const engine::ModelDetails& details = *card.details;
  return {
      {"default_generation_settings", {{"n_ctx", details.context_length}}},
      {"total_slots", 1},
      {"model_alias", card.name()},
      {"model_path", details.path.filename().string()},
      {"model_type", details.model_type},
      {"chat_template", details.chat_template},
      {"modalities", {{"vision", false}, {"audio", false}}},
      {"build_info", "saker " SAKER_VERSION},
      {"is_sleeping", card.state.state == engine::PoolState::kUnloaded},
  };
}

using Reader = Json (*)(const Json& body, const ServedModel& model);

void add(
    http::Router& router,
    const std::string& path,
    const std::shared_ptr<ModelCatalog>& catalog,
    Reader read
) {
  const auto answer = [read](const ExchangePtr& exchange, const Json& body, const ModelPtr& model) {
    exchange->respond(json_response(read(body, *model)));
  };
  router.add("POST", path, with_model(catalog, openai::kErrorShape, answer));
}

}  // namespace

void add_routes(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog) {
  add(router, "/tokenize", catalog, tokenize);
  add(router, "/detokenize", catalog, detokenize);
  add(router, "/apply-template", catalog, apply_template);
  add(router, "/v1/score", catalog, score);
  for (const char* path : {"/rerank", "/v1/rerank", "/v2/rerank", "/reranking", "/v1/reranking"}) {
    add(router, path, catalog, rerank);
  }
  router.add("GET", "/props", [catalog](const ExchangePtr& exchange) {
    const std::string name = http::query_value(exchange->request().query, "model").value_or("");
    exchange->respond(json_response(props(catalog->find(name))));
  });
  router.add("GET", "/version", [](const ExchangePtr& exchange) {
    exchange->respond(json_response({{"version", SAKER_VERSION}}));
  });
}

}  // namespace saker::server::extras
