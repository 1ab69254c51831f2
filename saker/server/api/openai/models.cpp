// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/openai/models.h"

#include <string>

namespace saker::server::openai {
namespace {

// As llama-server's router names them.
Json status_of(const ModelCard& card) {
  const auto& state = card.state;
  Json status;
  switch (state.state) {
    case engine::PoolState::kReady:
    case engine::PoolState::kLeaving:
      status = {{"value", "loaded"}};
      break;
    case engine::PoolState::kLoading:
    case engine::PoolState::kWaiting:
      status = {{"value", "loading"}};
      break;
    case engine::PoolState::kUnloaded:
      status = {{"value", "unloaded"}};
      break;
  }
  if (!state.error.empty()) {
    status["failed"] = true;
    status["error"] = state.error;
  }
  return status;
}

Json card_json(const ModelCard& card, const std::string& name, const Json& parent) {
  const engine::ModelDetails& details = *card.details;
  return {
      {"id", name},
      {"object", "model"},
      {"created", details.modified},
      {"owned_by", "saker"},
      {"root", card.name()},
      {"parent", parent},
      {"max_model_len", details.context_length},
      {"context_length", details.context_length},
      {"meta",
       {{"n_ctx", details.context_length},
        {"n_ctx_train", details.context_length},
        {"n_vocab", details.vocab_size},
        {"n_embd", details.hidden_size},
        {"n_params", details.parameters},
        {"size", details.file_bytes}}},
      {"status", status_of(card)},
  };
}

}  // namespace

Json models_json(const ModelCatalog& catalog) {
  Json data = Json::array();
  for (const ModelCard& card : catalog.cards()) {
    for (const std::string& name : card.names->names) {
      data.push_back(card_json(card, name, nullptr));
    }
    for (const engine::NamedAdapter& adapter : card.names->adapters) {
      data.push_back(card_json(card, adapter.name, card.name()));
    }
  }
  return {{"object", "list"}, {"data", std::move(data)}};
}

Json model_json(const ModelCatalog& catalog, std::string_view name) {
  const ModelCard card = catalog.find(name);
  const auto parent = card.parent_of(name);
  const auto found = find_name(*card.names, name);
  return card_json(card, found ? found->name : card.name(), parent ? Json(*parent) : Json(nullptr));
}

}  // namespace saker::server::openai
