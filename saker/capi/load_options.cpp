// SPDX-License-Identifier: Apache-2.0
#include "saker/capi/load_options.h"

#include "saker/base/error.h"
#include "saker/load/files/model_dir.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace saker::capi {
namespace {

constexpr std::int64_t kMostThreads = 1024;
constexpr std::int64_t kMostTokens = 1 << 20;
constexpr std::int64_t kMostRequests = 1 << 20;
constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max();

// Replaces a value if the member is there.
template <typename T>
void set(T& value, const std::optional<std::int64_t>& given) {
  value = given ? static_cast<T>(*given) : value;
}

std::string device(JsonFields& fields) {
  std::string name = fields.take_text("device").value_or("cpu");
  require(
      name == "cpu" || name == "gpu",
      ErrorCode::kInvalidArgument,
      "device: got {:?}, expected cpu or gpu",
      name
  );
  return name;
}

// As a path, or as paths by name.
std::vector<engine::NamedAdapter> adapters_of(JsonFields& fields) {
  std::vector<engine::NamedAdapter> adapters;
  const bool is_object = fields.rest().contains("adapter") && fields.rest()["adapter"].is_object();
  const auto given =
      fields.take("adapter", is_object ? engine::OptionKind::kObject : engine::OptionKind::kPath);
  if (!given) {
    return adapters;
  }
  if (!is_object) {
    adapters.push_back({.name = "", .dir = given->get<std::string>()});
    return adapters;
  }
  for (const auto& [name, path] : given->items()) {
    require(
        path.is_string(),
        ErrorCode::kInvalidArgument,
        "adapter {:?}: got {}, expected a path",
        name,
        path.type_name()
    );
    adapters.push_back({.name = name, .dir = path.get<std::string>()});
  }
  engine::check_adapter_names(adapters);
  return adapters;
}

// "auto" is what the model's folder brings; absent: none.
void set_draft(JsonFields& fields, std::string_view model, engine::EngineOptions& options) {
  const std::string draft = fields.take_text("draft").value_or("");
  options.mtp = !draft.empty();
  if (draft == "auto") {
    options.draft = load::find_draft(load::resolve_model(model)).value_or(std::filesystem::path());
    options.draft_is_optional = true;
  } else if (!draft.empty()) {
    options.draft = load::resolve_model(draft);
  }
}

}  // namespace

LoadOptions load_options(JsonFields fields, std::string_view model) {
  LoadOptions result;
  engine::EngineOptions& options = result.engine;
  set(options.threads, fields.take_integer("threads", 0, kMostThreads));
  options.device = device(fields);
  set(options.prefill_step, fields.take_integer("prefill_step", 1, kMostTokens));
  set(options.batch, fields.take_integer("batch", 1, kMostRequests));
  set(options.max_queue, fields.take_integer("max_queue", 0, kMostRequests));
  options.target_itl = fields.take_number("target_itl", 0).value_or(options.target_itl);
  options.fast_prefill = fields.take_flag("fast_prefill").value_or(false);
  options.chats = fields.take_flag("chats").value_or(false);
  set(options.prefix_cache, fields.take_integer("prefix_cache", 0, kMostBytes));
  options.prefix_cache_dir = fields.take_text("prefix_cache_dir").value_or("");
  set(options.prefix_cache_dir_size, fields.take_integer("prefix_cache_dir_size", 0, kMostBytes));
  set(options.prefix_cache_interval, fields.take_integer("prefix_cache_interval", 1, kMostTokens));
  result.adapters = adapters_of(fields);
  if (result.adapters.size() == 1) {
    options.adapter = result.adapters.front().dir;  // It may have to be in the weights.
  }
  set_draft(fields, model, options);
  fields.require_all_taken();
  return result;
}

}  // namespace saker::capi
