// SPDX-License-Identifier: Apache-2.0
#include "saker/capi/model.h"

#include "saker/base/error.h"
#include "saker/capi/load_options.h"
#include "saker/capi/status.h"
#include "saker/engine/options/apply_options.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace saker::capi {

Model::Model(const char* name, const char* options) {
  log_once();
  const std::string_view model = text_or_empty(name, "model");
  LoadOptions wanted = load_options(JsonFields(options, "options"), model);
  has_default_adapter_ = !wanted.adapters.empty();
  adapters_ = std::move(wanted.adapters);
  engine_ = engine::Engine::load(model, wanted.engine);
}

const text::Tokenizer& Model::tokenizer() const {
  engine_->require_text();
  return *engine_->tokenizer();
}

engine::View Model::view(const std::optional<std::string>& key) const {
  const std::lock_guard lock(mutex_);
  return engine::parse_view(key.value_or(has_default_adapter_ ? "ft" : "base"), adapters_);
}

engine::Request Model::request(JsonFields fields) const {
  engine::Request request;
  const auto key = fields.take_text("view");
  require(
      !key || !(fields.rest().contains("adapter") || fields.rest().contains("adapter_scale")),
      ErrorCode::kInvalidArgument,
      "view: got {:?} beside an adapter, expected one of the two",
      key.value_or("")
  );
  const engine::View chosen = view(key);
  request.placement.adapter = chosen.adapter;
  request.placement.adapter_scale = chosen.strength;
  request.placement.adapter_null = chosen.null;
  request.output.n =
      static_cast<int>(fields.take_integer("n", 1, engine::kMostChoices).value_or(1));
  request.output.token_events = fields.take_flag("token_events").value_or(false);
  engine::apply_record(fields.rest(), request);
  return request;
}

void Model::add_adapter(std::string name, std::string path) {
  engine::NamedAdapter added{.name = std::move(name), .dir = std::move(path)};
  require(!added.name.empty(), ErrorCode::kInvalidArgument, "name: got \"\", expected a name");
  std::vector<engine::NamedAdapter> all = adapters();
  all.push_back(added);
  engine::check_adapter_names(all);
  // Scoring loads the adapter, which the engine then keeps.
  constexpr std::int32_t kAnyToken = 0;
  static_cast<void>(engine_->score(
      {.tokens = std::vector<std::int32_t>{kAnyToken, kAnyToken},
       .views = {{.key = added.name, .adapter = added.dir, .name = added.name}}}
  ));
  const std::lock_guard lock(mutex_);
  all = adapters_;
  all.push_back(added);
  engine::check_adapter_names(all);  // Another thread may have taken the name.
  adapters_ = std::move(all);
}

std::vector<engine::NamedAdapter> Model::adapters() const {
  const std::lock_guard lock(mutex_);
  return adapters_;
}

}  // namespace saker::capi
