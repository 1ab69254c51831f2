// SPDX-License-Identifier: Apache-2.0
#include "saker/server/models/model_catalog.h"

#include "saker/base/error.h"
#include "saker/base/nearest.h"
#include "saker/base/utf8.h"
#include "saker/server/turns/api_error.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace saker::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kShownNames = 8;
constexpr std::size_t kLongestShown = 200;

// "; did you mean X? This server has A, B".
std::string hint(std::string_view name, const std::vector<std::string>& known) {
  std::string text;
  if (const auto near = nearest(name, known)) {
    text = fmt::format("; did you mean {}?", *near);
  }
  text += text.empty() ? "; this server has " : " This server has ";
  for (std::size_t i = 0; i < std::min(known.size(), kShownNames); ++i) {
    text += (i == 0 ? "" : ", ") + known[i];
  }
  return text + (known.size() > kShownNames
                     ? fmt::format(" and {} more", known.size() - kShownNames)
                     : "");
}

// Failed loads are no fault of the request.
ApiError load_error(const std::string& name, const std::exception_ptr& error) {
  constexpr int kRetryAfter = 30;  // Seconds.
  try {
    std::rethrow_exception(error);
  } catch (const Error& found) {
    switch (found.code()) {
      case ErrorCode::kCapacity:
        return ApiError(503, found.what())
            .with_code("insufficient_memory")
            .with_retry_after(kRetryAfter);
      case ErrorCode::kCancelled:
        return ApiError(503, "the server is about to end").with_retry_after(kRetryAfter);
      default:
        return {500, fmt::format("the model {} can't be loaded: {}", quote(name), found.what())};
    }
  } catch (...) {
    return as_api_error(error);
  }
}

}  // namespace

std::optional<std::string> ModelCard::parent_of(std::string_view given) const {
  const auto found = find_name(*names, given);
  return found && !found->adapter.empty() ? std::optional(name()) : std::nullopt;
}

ModelCatalog::ModelCatalog(const CatalogOptions& options)
    : takes_any_name_(options.takes_any_name), pool_(options.memory_bytes) {}

void ModelCatalog::require_free(std::string_view name) const {
  require(
      !name.empty() && find_model(name) == nullptr,
      ErrorCode::kInvalidArgument,
      "{}: two models have this name",
      quote(name)
  );
}

void ModelCatalog::add(ModelNames names, engine::ModelDetails details, engine::PoolModel model) {
  const std::lock_guard lock(mutex_);
  for (const std::string& name : names.names) {
    require_free(name);
  }
  for (const engine::NamedAdapter& adapter : names.adapters) {
    require_free(adapter.name);
  }
  names.takes_any_name = takes_any_name_ && models_.empty();
  model.name = names.names.front();
  model.aliases.clear();  // The catalog knows them.
  pool_.add(std::move(model));
  models_.push_back(
      {std::make_shared<const ModelNames>(std::move(names)),
       std::make_shared<const engine::ModelDetails>(std::move(details)),
       std::make_shared<Counters>()}
  );
}

std::vector<ModelCard> ModelCatalog::cards() const {
  const std::lock_guard lock(mutex_);
  const std::vector<engine::PoolEntry> states = pool_.models();
  std::vector<ModelCard> cards;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    cards.push_back({models_[i].names, models_[i].details, models_[i].counters, states[i]});
  }
  return cards;
}

const ModelCatalog::Model* ModelCatalog::find_model(std::string_view name) const {
  const auto found = std::ranges::find_if(models_, [&](const Model& model) {
    return find_name(*model.names, name).has_value();
  });
  return found == models_.end() ? nullptr : &*found;
}

ModelCatalog::Model ModelCatalog::known_model(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  if (const Model* found = find_model(name)) {
    return *found;
  }
  if (takes_any_name_ && !models_.empty()) {
    return models_.front();
  }
  std::vector<std::string> known;
  for (const Model& model : models_) {
    std::ranges::copy(model.names->names, std::back_inserter(known));
    for (const engine::NamedAdapter& adapter : model.names->adapters) {
      known.push_back(adapter.name);
    }
  }
  throw ApiError(
      404,
      fmt::format(
          "the model {} is not here{}", quote(name.substr(0, kLongestShown)), hint(name, known)
      )
  )
      .with_param("model")
      .with_code("model_not_found");
}

ModelCard ModelCatalog::find(std::string_view name) const {
  const Model model = known_model(name);
  for (engine::PoolEntry& state : pool_.models()) {
    if (state.name == model.names->names.front()) {
      return {model.names, model.details, model.counters, std::move(state)};
    }
  }
  throw Error(ErrorCode::kInternal, "a model is not in the pool");
}

std::shared_ptr<const ServedModel> ModelCatalog::use_now(
    std::string_view name, std::optional<engine::KeepAlive> keep_alive
) {
  const Model model = known_model(name);
  auto held = pool_.use_now(model.names->names.front(), keep_alive);
  return held == nullptr
             ? nullptr
             : std::make_shared<const ServedModel>(std::move(held), model.names, model.counters);
}

std::uint64_t ModelCatalog::ask(
    std::string_view name, std::optional<engine::KeepAlive> keep_alive, Taker taker
) {
  Model model = known_model(name);
  const std::string own_name = model.names->names.front();
  auto take = [model = std::move(model), taker = std::move(taker), start = Clock::now()](
                  std::shared_ptr<engine::LanguageModel> held, const std::exception_ptr& error
              ) {
    if (error != nullptr) {
      const ApiError failed = load_error(model.names->names.front(), error);
      return taker(nullptr, std::make_exception_ptr(failed));
    }
    taker(
        std::make_shared<const ServedModel>(
            std::move(held), model.names, model.counters, Clock::now() - start
        ),
        nullptr
    );
  };
  return pool_.ask(own_name, std::move(take), keep_alive);
}

void ModelCatalog::unload(std::string_view name) {
  pool_.unload(known_model(name).names->names.front());
}

void ModelCatalog::load(std::string_view name) {
  pool_.use(known_model(name).names->names.front());
}

bool ModelCatalog::has(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return find_model(name) != nullptr;
}

void ModelCatalog::add_adapter(std::string_view model, engine::NamedAdapter adapter) {
  const std::string base = known_model(model).names->names.front();
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(models_, [&](const Model& one) {
    return one.names->names.front() == base;
  });
  require_free(adapter.name);
  ModelNames names = *found->names;
  names.adapters.push_back(std::move(adapter));
  engine::check_adapter_names(names.adapters);
  found->names = std::make_shared<const ModelNames>(std::move(names));
}

std::string ModelCatalog::remove_adapter(std::string_view name) {
  const std::lock_guard lock(mutex_);
  for (Model& model : models_) {
    ModelNames names = *model.names;
    const auto removed = std::erase_if(names.adapters, [&](const engine::NamedAdapter& one) {
      return one.name == name;
    });
    if (removed > 0) {
      model.names = std::make_shared<const ModelNames>(std::move(names));
      return model.names->names.front();
    }
  }
  throw ApiError(
      404, fmt::format("the adapter {} is not here", quote(name.substr(0, kLongestShown)))
  )
      .with_param("lora_name");
}

double ModelCatalog::busy_seconds() const {
  double longest = 0.0;
  for (const engine::PoolEntry& entry : pool_.models()) {
    longest = std::max(longest, entry.busy_seconds);
  }
  return longest;
}

}  // namespace saker::server
