// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/ollama/model_facts.h"

#include "saker/server/turns/fields.h"
#include "saker/server/turns/wire.h"

#include <chrono>
#include <string>
#include <utility>

namespace saker::server::ollama {
namespace {

// "494.0M", "1.5B".
std::string parameter_size(std::int64_t parameters) {
  constexpr double kMillion = 1e6;
  constexpr double kBillion = 1e9;
  const auto count = static_cast<double>(parameters);
  if (parameters <= 0) {
    return "";
  }
  return count >= kBillion ? fmt::format("{:.1f}B", count / kBillion)
                           : fmt::format("{:.1f}M", count / kMillion);
}

Json details_json(const engine::ModelDetails& details) {
  return {
      {"parent_model", ""},
      {"format", details.format},
      {"family", details.model_type},
      {"families", Json::array({details.model_type})},
      {"parameter_size", parameter_size(details.parameters)},
      {"quantization_level", details.quantization},
      {"context_length", details.context_length},
      {"embedding_length", details.hidden_size},
  };
}

Json capabilities(const engine::ModelDetails& details) {
  Json list = Json::array({details.embeds ? "embedding" : "completion"});
  if (details.takes_tools) {
    list.push_back("tools");
  }
  if (details.switches_thinking) {
    list.push_back("thinking");
  }
  return list;
}

std::string time_of(std::int64_t seconds) {
  return utc_time(std::chrono::system_clock::time_point(std::chrono::seconds(seconds)));
}

Json card_json(const ModelCard& card, const std::string& name) {
  const engine::ModelDetails& details = *card.details;
  return {
      {"name", name},
      {"model", name},
      {"modified_at", time_of(details.modified)},
      {"size", details.file_bytes},
      {"digest", ""},
      {"details", details_json(details)},
  };
}

bool is_loaded(const ModelCard& card) {
  return card.state.state == engine::PoolState::kReady ||
         card.state.state == engine::PoolState::kLeaving;
}

}  // namespace

Json tags_json(const ModelCatalog& catalog) {
  Json models = Json::array();
  const auto add = [&](const ModelCard& card, const std::string& name) {
    Json one = card_json(card, name);
    one["capabilities"] = capabilities(*card.details);
    models.push_back(std::move(one));
  };
  for (const ModelCard& card : catalog.cards()) {
    for (const std::string& name : card.names->names) {
      add(card, name);
    }
    for (const engine::NamedAdapter& adapter : card.names->adapters) {
      add(card, adapter.name);
    }
  }
  return {{"models", std::move(models)}};
}

Json running_json(const ModelCatalog& catalog) {
  Json models = Json::array();
  for (const ModelCard& card : catalog.cards()) {
    if (!is_loaded(card)) {
      continue;
    }
    Json one = card_json(card, card.name());
    one["size"] = card.state.bytes;
    one["size_vram"] = 0;
    one["context_length"] = card.details->context_length;
    // Clients expect a time of one that stays, too.
    one["expires_at"] = card.state.expires ? utc_time(*card.state.expires) : "2999-01-01T00:00:00Z";
    models.push_back(std::move(one));
  }
  return {{"models", std::move(models)}};
}

Json show_json(const Json& body, const ModelCatalog& catalog) {
  Fields fields(body);
  const auto old_name = fields.text("name");
  const ModelCard card = catalog.find(fields.text("model").value_or(old_name.value_or("")));
  const engine::ModelDetails& details = *card.details;
  const std::string& type = details.model_type;
  return {
      {"modelfile", ""},
      {"parameters", ""},
      {"template", details.chat_template},
      {"details", details_json(details)},
      {"model_info",
       {{"general.architecture", type},
        {"general.parameter_count", details.parameters},
        {type + ".context_length", details.context_length},
        {type + ".embedding_length", details.hidden_size},
        {type + ".vocab_size", details.vocab_size}}},
      {"capabilities", capabilities(details)},
      {"modified_at", time_of(details.modified)},
  };
}

}  // namespace saker::server::ollama
