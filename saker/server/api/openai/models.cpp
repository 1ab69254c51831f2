// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/openai/models.h"

#include <string>

namespace saker::server::openai {
namespace {

Json card(const ServedModel& model, const std::string& name, const Json& parent) {
  const engine::ModelFacts& facts = model.model().facts();
  return {
      {"id", name},
      {"object", "model"},
      {"created", model.created()},
      {"owned_by", "saker"},
      {"root", model.name()},
      {"parent", parent},
      {"max_model_len", facts.context_length},
      {"context_length", facts.context_length},
      {"meta",
       {{"n_ctx", facts.context_length},
        {"n_ctx_train", facts.context_length},
        {"n_vocab", facts.vocab_size},
        {"size", facts.weight_bytes}}},
  };
}

}  // namespace

Json models_json(const ServedModel& model) {
  Json data = Json::array();
  for (const std::string& name : model.names().names) {
    data.push_back(card(model, name, nullptr));
  }
  for (const engine::NamedAdapter& adapter : model.names().adapters) {
    data.push_back(card(model, adapter.name, model.name()));
  }
  return {{"object", "list"}, {"data", std::move(data)}};
}

Json model_json(const ServedModel& model, std::string_view name) {
  const FoundModel found = model.find(name);
  return card(model, found.name, found.adapter.empty() ? Json(nullptr) : Json(model.name()));
}

}  // namespace saker::server::openai
