// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/requests/model_defaults.h"

#include "saker/cli/options/request_fields.h"
#include "saker/load/files/model_dir.h"

namespace saker::cli {

ModelDefaults::ModelDefaults(const std::string& model)
    : path_(load::resolve_model(model)), settings_(load::read_settings(path_)) {}

void ModelDefaults::apply(engine::GenerateRequest& request) const {
  apply_record(settings_.options, request);
  if (settings_.has_adapter) {
    request.adapter = adapter();
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
