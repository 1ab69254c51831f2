// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/served_model.h"

#include "saker/base/utf8.h"
#include "saker/server/turns/api_error.h"

#include <algorithm>
#include <utility>

namespace saker::server {
namespace {

constexpr std::string_view kLatest = ":latest";

std::optional<FoundModel> find_exactly(const ModelNames& names, std::string_view name) {
  const auto is_name = [&](std::string_view one) {
    return std::ranges::find(names.names, one) != names.names.end();
  };
  if (name.empty() || is_name(name)) {
    return FoundModel{name.empty() ? names.names.front() : std::string(name), {}};
  }
  for (const engine::NamedAdapter& adapter : names.adapters) {
    const std::size_t colon = name.size() - std::min(name.size(), adapter.name.size() + 1);
    const bool is_of_base =
        name.substr(colon) == ":" + adapter.name && is_name(name.substr(0, colon));
    if (name == adapter.name || is_of_base) {
      return FoundModel{std::string(name), adapter.dir};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<FoundModel> find_name(const ModelNames& names, std::string_view name) {
  auto found = find_exactly(names, name);
  if (!found && name.ends_with(kLatest) && name.size() > kLatest.size()) {
    found = find_exactly(names, name.substr(0, name.size() - kLatest.size()));
  }
  return found;
}

ServedModel::ServedModel(
    std::shared_ptr<engine::LanguageModel> model,
    std::shared_ptr<const ModelNames> names,
    std::shared_ptr<Counters> counters,
    std::chrono::nanoseconds waited
)
    : model_(std::move(model)),
      names_(std::move(names)),
      counters_(std::move(counters)),
      waited_(waited) {}

ServedModel ServedModel::with_stop(std::stop_token stop) const {
  ServedModel model = *this;
  model.stop_ = std::move(stop);
  return model;
}

FoundModel ServedModel::find(std::string_view name) const {
  if (auto found = find_name(*names_, name)) {
    return *std::move(found);
  }
  if (names_->takes_any_name) {
    return {this->name(), {}};
  }
  throw ApiError(
      404, fmt::format("the model {} is not here; this server has {}", quote(name), this->name())
  )
      .with_param("model")
      .with_code("model_not_found");
}

}  // namespace saker::server
