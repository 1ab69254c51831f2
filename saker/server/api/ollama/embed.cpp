// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/ollama/embed.h"

#include "saker/server/turns/fields.h"

#include <chrono>
#include <string>
#include <utility>

namespace saker::server::ollama {
namespace {

constexpr std::size_t kMostInputs = 2048;

engine::EmbedRequest request_for(const FoundModel& found, const std::vector<std::string>& texts) {
  engine::EmbedRequest request;
  request.inputs.assign(texts.begin(), texts.end());
  request.view = {.key = found.name, .adapter = found.adapter};
  return request;
}

FoundModel model_of(Fields& fields, const ServedModel& model) {
  fields.required("model");
  return model.find(*fields.text("model"));
}

}  // namespace

Json embed(const Json& body, const ServedModel& model) {
  const auto start = std::chrono::steady_clock::now();
  Fields fields(body);
  const FoundModel found = model_of(fields, model);
  fields.required("input");
  const std::vector<std::string> texts = fields.texts("input");
  if (texts.size() > kMostInputs) {
    fields.fail("input", fmt::format("expected at most {} texts", kMostInputs));
  }
  engine::EmbedRequest request = request_for(found, texts);
  request.stop = model.stop();
  request.truncate = fields.flag("truncate").value_or(true);
  request.dimensions = static_cast<int>(fields.integer("dimensions", 0, kMaxInt).value_or(0));
  fields.accept({"keep_alive", "options"});
  fields.log_unknown("ollama");
  const engine::EmbedResult result = model.model().embed(request);
  const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::steady_clock::now() - start
  );
  return {
      {"model", found.name},
      {"embeddings", result.embeddings},
      {"total_duration", time.count()},
      {"load_duration", model.waited().count()},
      {"prompt_eval_count", result.tokens},
  };
}

Json old_embedding(const Json& body, const ServedModel& model) {
  Fields fields(body);
  const FoundModel found = model_of(fields, model);
  fields.required("prompt");
  engine::EmbedRequest request = request_for(found, {*fields.text("prompt")});
  request.stop = model.stop();
  request.truncate = true;
  fields.accept({"keep_alive", "options"});
  fields.log_unknown("ollama");
  return {{"embedding", model.model().embed(request).embeddings.at(0)}};
}

}  // namespace saker::server::ollama
