// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/extras/rerank.h"

#include "saker/engine/embedding.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/wire.h"

#include <algorithm>
#include <string>
#include <utility>

namespace saker::server::extras {
namespace {

constexpr std::size_t kMostDocuments = 2048;

// Texts, or objects with a text.
std::vector<std::string> read_documents(Fields& fields, std::string_view name) {
  fields.required(name);
  const Json& list = *fields.list(name);
  if (list.empty() || list.size() > kMostDocuments) {
    fields.fail(name, fmt::format("expected 1 to {} documents", kMostDocuments));
  }
  std::vector<std::string> documents;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_string()) {
      documents.push_back(list[i].get<std::string>());
      continue;
    }
    Fields document(list[i], fmt::format("{}[{}]", fields.path_of(name), i));
    document.required("text");
    documents.push_back(*document.text("text"));
  }
  return documents;
}

}  // namespace

Json rerank(const Json& body, const ServedModel& model) {
  Fields fields(body);
  const FoundModel found = model.find(fields.text("model").value_or(""));
  const bool is_bare = fields.has("texts");
  engine::RerankRequest request;
  fields.required("query");
  request.query = *fields.text("query");
  request.documents = read_documents(fields, is_bare ? "texts" : "documents");
  request.instruction = fields.text("instruction").value_or("");
  request.truncate = fields.flag("truncate").value_or(false);
  request.view = {.key = found.name, .adapter = found.adapter};
  request.stop = model.stop();
  const auto most = fields.integer("top_n", 0, kMaxInt).value_or(0);
  const bool shows = fields.flag("return_documents").value_or(true);
  fields.accept({"return_text", "raw_scores", "user"});
  fields.refuse({"max_tokens_per_doc", "truncate_prompt_tokens"});
  fields.log_unknown("rerank");
  const engine::RerankResult result = model.model().rerank(request);
  Json results = Json::array();
  for (const std::size_t place : engine::best_first(result.scores)) {
    if (most > 0 && results.size() >= static_cast<std::size_t>(most)) {
      break;
    }
    Json one = {{"index", place}};
    one[is_bare ? "score" : "relevance_score"] = result.scores[place];
    if (shows && !is_bare) {
      one["document"] = {{"text", request.documents[place]}};
    }
    results.push_back(std::move(one));
  }
  if (is_bare) {
    return results;
  }
  return {
      {"id", new_id("rerank-")},
      {"model", found.name},
      {"usage", {{"prompt_tokens", result.tokens}, {"total_tokens", result.tokens}}},
      {"results", std::move(results)},
  };
}

}  // namespace saker::server::extras
