// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/requests/model_defaults.h"

#include "saker/engine/options/apply_options.h"
#include "saker/load/files/model_dir.h"

namespace saker::cli {
namespace {

// The options under their own names; of several names of one option the last counts. A model that
// was made by an older version may have other names.
Json by_own_names(const Json& options) {
  Json result = Json::object();
  for (const auto& [name, value] : options.items()) {
    const engine::RequestOption* option = engine::find_option(name);
    result[option == nullptr ? name : std::string(option->name)] = value;
  }
  return result;
}

}  // namespace

ModelDefaults::ModelDefaults(const std::string& model)
    : path_(load::resolve_model(model)), settings_(load::read_settings(path_)) {
  settings_.options = by_own_names(settings_.options);
}

void ModelDefaults::apply(engine::Request& request) const {
  engine::apply_record(settings_.options, request);
  if (settings_.has_adapter) {
    request.placement.adapter = adapter();
  }
}

std::filesystem::path ModelDefaults::adapter() const {
  return settings_.has_adapter ? path_ / "adapter" : std::filesystem::path();
}

Json ModelDefaults::opening(const std::string& system) const {
  Json messages = Json::array();
  const std::string& text = system.empty() ? settings_.system : system;
  if (!text.empty()) {
    messages.push_back({{"role", "system"}, {"content", text}});
  }
  for (const Json& message : settings_.messages) {
    messages.push_back(message);
  }
  return messages;
}

}  // namespace saker::cli
