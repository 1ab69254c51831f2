// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/extras/scores.h"

#include "saker/base/error.h"
#include "saker/server/turns/fields.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace saker::server::extras {
namespace {

constexpr std::size_t kMostRecords = 1024;
constexpr int kMostAlternatives = 1000;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

std::vector<std::int32_t> read_tokens(
    Fields& fields, std::string_view name, const ServedModel& model
) {
  const Json* list = fields.list(name);
  if (list == nullptr) {
    return {};
  }
  std::vector<std::int32_t> tokens;
  for (const Json& id : *list) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
        id.get<std::int64_t>() >= model.model().facts().vocab_size) {
      fields.fail(
          name,
          fmt::format(
              "expected token ids below {}, got {}",
              model.model().facts().vocab_size,
              describe_json(id)
          )
      );
    }
    tokens.push_back(id.get<std::int32_t>());
  }
  return tokens;
}

engine::ScoreRequest read_record(
    Fields& fields, const ServedModel& model, const std::vector<engine::View>& views, int top_k
) {
  engine::ScoreRequest request;
  request.text = fields.text("text");
  request.prompt = fields.text("prompt");
  request.completion = fields.text("completion");
  if (fields.has("tokens")) {
    request.tokens = read_tokens(fields, "tokens", model);
  }
  request.prompt_tokens = read_tokens(fields, "prompt_tokens", model);
  request.top_k = top_k;
  request.views = views;
  return request;
}

Json view_json(const engine::ViewScores& scores) {
  Json logprobs = Json::array();
  for (const auto& value : scores.logprobs) {
    logprobs.push_back(value ? number(*value) : Json(nullptr));
  }
  Json view = {
      {"logprobs", std::move(logprobs)},
      {"sum", number(scores.sum)},
      {"mean", number(scores.mean)},
      {"is_greedy", scores.is_greedy},
  };
  if (scores.next) {
    Json next = Json::array();
    for (const double value : scores.next->logprobs) {
      next.push_back(number(value));
    }
    view["next"] = {{"token_ids", scores.next->token_ids}, {"logprobs", std::move(next)}};
  }
  return view;
}

Json outcome_json(const engine::ScoreOutcome& outcome) {
  if (const auto* error = std::get_if<Error>(&outcome)) {
    return {{"error", {{"message", error->what()}, {"code", error_code_name(error->code())}}}};
  }
  const auto& result = std::get<engine::ScoreResult>(outcome);
  Json views = Json::object();
  for (const engine::ViewScores& scores : result.views) {
    views[scores.view] = view_json(scores);
  }
  return {
      {"tokens", result.tokens},
      {"boundary_merged", result.boundary_merged},
      {"views", std::move(views)},
  };
}

}  // namespace

Json score(const Json& body, const ServedModel& model) {
  Fields fields(body);
  const FoundModel found = model.find(fields.text("model").value_or(""));
  std::vector<engine::View> views;
  for (const std::string& key : fields.texts("views")) {
    views.push_back(engine::parse_view(key, model.names().adapters));
  }
  if (views.empty() && !found.adapter.empty()) {
    views.push_back({.key = found.name, .adapter = found.adapter});
  }
  const int top_k = static_cast<int>(fields.integer("top_k", 0, kMostAlternatives).value_or(0));
  std::vector<engine::ScoreRequest> requests;
  const Json* records = fields.list("records");
  if (records != nullptr && records->size() > kMostRecords) {
    fields.fail("records", fmt::format("expected at most {} records", kMostRecords));
  }
  for (std::size_t i = 0; records != nullptr && i < records->size(); ++i) {
    Fields record((*records)[i], fmt::format("records[{}]", i));
    requests.push_back(read_record(record, model, views, top_k));
    record.log_unknown("score");
  }
  if (records == nullptr) {
    requests.push_back(read_record(fields, model, views, top_k));
  }
  fields.log_unknown("score");
  for (engine::ScoreRequest& request : requests) {
    request.stop = model.stop();
  }
  const std::vector<engine::ScoreOutcome> outcomes = model.model().score(requests);
  if (records == nullptr) {
    if (const auto* error = std::get_if<Error>(&outcomes.at(0))) {
      throw Error(*error);
    }
    Json result = outcome_json(outcomes.at(0));
    result["model"] = found.name;
    return result;
  }
  Json results = Json::array();
  for (const engine::ScoreOutcome& outcome : outcomes) {
    results.push_back(outcome_json(outcome));
  }
  return {{"model", found.name}, {"results", std::move(results)}};
}

}  // namespace saker::server::extras
