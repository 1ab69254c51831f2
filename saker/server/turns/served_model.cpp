// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/served_model.h"

#include "saker/base/utf8.h"
#include "saker/server/turns/api_error.h"
#include "saker/server/turns/wire.h"

#include <algorithm>
#include <utility>

namespace saker::server {

ServedModel::ServedModel(engine::LanguageModel& model, ModelNames names)
    : model_(model), names_(std::move(names)), created_(unix_time()) {}

FoundModel ServedModel::find(std::string_view name) const {
  if (name.empty() || std::ranges::find(names_.names, name) != names_.names.end()) {
    return {name.empty() ? this->name() : std::string(name), {}};
  }
  for (const engine::NamedAdapter& adapter : names_.adapters) {
    const std::size_t colon = name.size() - std::min(name.size(), adapter.name.size() + 1);
    const bool is_of_base =
        name.substr(colon) == ":" + adapter.name &&
        std::ranges::find(names_.names, name.substr(0, colon)) != names_.names.end();
    if (name == adapter.name || is_of_base) {
      return {std::string(name), adapter.dir};
    }
  }
  if (names_.takes_any_name) {
    return {this->name(), {}};
  }
  throw ApiError(
      404, fmt::format("the model {} is not here; this server has {}", quote(name), this->name())
  )
      .with_param("model")
      .with_code("model_not_found");
}

}  // namespace saker::server
