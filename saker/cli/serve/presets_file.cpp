// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/serve/presets_file.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/cli/options/model_args.h"
#include "saker/cli/serve/presets_text.h"
#include "saker/load/files/adapter_files.h"
#include "saker/server/models/keep_alive.h"
#include "saker/server/turns/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

namespace saker::cli {
namespace {

namespace fs = std::filesystem;
using server::Fields;

constexpr std::array<std::string_view, 14> kMembers = {
    "model",
    "aliases",
    "adapters",
    "draft",
    "context",
    "batch",
    "kv_bits",
    "prefix_cache",
    "cache_memory",
    "prefill_step",
    "fast_prefill",
    "sampling",
    "pinned",
    "keep_alive"
};
// They belong to one model alone.
constexpr std::array<std::string_view, 4> kOwnMembers = {"model", "aliases", "adapters", "draft"};

void refuse_others(const Fields& fields, const Json& object) {
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(kMembers, name) == kMembers.end()) {
      fields.fail(
          name, fmt::format("there is no such member; there are {}", fmt::join(kMembers, ", "))
      );
    }
  }
}

// A path relative to the file, if something is there; else as it is: perhaps a repo id.
std::string beside(const fs::path& folder, const std::string& path) {
  std::error_code ignored;
  return !path.empty() && fs::exists(folder / path, ignored) ? (folder / path).string() : path;
}

std::vector<engine::NamedAdapter> read_adapters(Fields& fields, const fs::path& folder) {
  std::vector<engine::NamedAdapter> adapters;
  const Json* given = fields.object("adapters");
  if (given == nullptr) {
    return adapters;
  }
  Fields named(*given, fields.path_of("adapters"));
  for (const auto& [name, value] : given->items()) {
    const fs::path path = beside(folder, named.text(name).value_or(""));
    if (!load::may_be_adapter(path)) {
      named.fail(name, fmt::format("{} is no folder and no GGUF file", quote_path(path)));
    }
    adapters.push_back({name, path});
  }
  try {
    engine::check_adapter_names(adapters);
  } catch (const Error& error) {
    fields.fail("adapters", error.what());
  }
  return adapters;
}

std::optional<int> small_integer(Fields& fields, std::string_view name, int high) {
  const auto given = fields.integer(name, 1, high);
  return given ? std::optional(static_cast<int>(*given)) : std::nullopt;
}

std::optional<std::size_t> read_size(Fields& fields, std::string_view name) {
  const auto text = fields.text(name);
  try {
    return text ? std::optional(parse_size(std::string(name), *text)) : std::nullopt;
  } catch (const CLI::ValidationError&) {
    fields.fail(
        name, "expected bytes, a size such as \"512M\" or \"2G\", or \"off\", got " + quote(*text)
    );
  }
}

std::optional<engine::KeepAlive> read_keep_alive(Fields& fields, const Json& given) {
  if (!fields.has("keep_alive")) {
    return std::nullopt;
  }
  try {
    return server::read_keep_alive({{"keep_alive", given["keep_alive"]}});
  } catch (const server::ApiError& error) {  // It names the member alone.
    throw server::ApiError(400, fields.path_of(error.what()))
        .with_param(fields.path_of("keep_alive"));
  }
}

// Checks what the engine does, and names the member.
void check(const engine::Preset& preset, const Fields& fields) {
  const auto checked = [&](std::string_view member, const engine::Preset& part) {
    try {
      engine::check_preset(part);
    } catch (const Error& error) {
      const std::string_view reason = error.what();
      const std::string prefix = fmt::format("{}: ", member);
      fields.fail(member, reason.starts_with(prefix) ? reason.substr(prefix.size()) : reason);
    }
  };
  checked("kv_bits", {.kv_bits = preset.kv_bits});
  checked("sampling", {.sampling = preset.sampling});
}

// `given` over the members of `defaults`. Options of sampling are single members, too.
Json over_defaults(const Json& given, const Json& defaults) {
  Json result = given;
  if (!given.is_object()) {
    return result;
  }
  for (const auto& [name, value] : defaults.items()) {
    Json& member = result[name];
    if (member.is_null()) {
      member = value;
    } else if (name == "sampling" && member.is_object() && value.is_object()) {
      for (const auto& [option, amount] : value.items()) {
        member.emplace(option, Json(amount));
      }
    }
  }
  return result;
}

ModelPreset read_preset(
    const std::string& name, const Json& given, const std::string& path, const fs::path& folder
) {
  constexpr int kMostRequests = 1024;
  constexpr int kMostTokens = std::numeric_limits<int>::max();
  Fields fields(given, path);
  refuse_others(fields, given);
  ModelPreset preset;
  fields.required("model");
  preset.model = beside(folder, *fields.text("model"));
  preset.names = fields.texts("aliases");
  preset.names.insert(preset.names.begin(), name);
  preset.adapters = read_adapters(fields, folder);
  if (const auto draft = fields.text("draft")) {
    preset.draft = beside(folder, *draft);
  }
  preset.batch = small_integer(fields, "batch", kMostRequests);
  preset.prefix_cache = read_size(fields, "prefix_cache");
  preset.cache_memory = read_size(fields, "cache_memory");
  preset.prefill_step = small_integer(fields, "prefill_step", kMostTokens);
  preset.fast_prefill = fields.flag("fast_prefill");
  preset.keep_alive = read_keep_alive(fields, given);
  preset.is_pinned = fields.flag("pinned").value_or(false);
  preset.preset.context = fields.integer("context", 1).value_or(0);
  preset.preset.kv_bits = static_cast<int>(fields.integer("kv_bits", 0, 32).value_or(0));
  if (const Json* sampling = fields.object("sampling")) {
    preset.preset.sampling = *sampling;
  }
  check(preset.preset, fields);
  return preset;
}

// The table for all models. A model stands in for those that take it, so that mistakes are named.
Json read_defaults(Fields& fields, const fs::path& folder) {
  const Json* given = fields.object("defaults");
  if (given == nullptr) {
    return Json::object();
  }
  Fields members(*given, "defaults");
  for (const std::string_view own : kOwnMembers) {
    if (members.has(own)) {
      members.fail(own, "belongs to one model, expected in models.NAME");
    }
  }
  read_preset("", over_defaults({{"model", ""}}, *given), "defaults", folder);
  return *given;
}

std::vector<ModelPreset> read_models(const Json& given, const fs::path& folder) {
  if (!given.is_object()) {
    throw server::ApiError(400, fmt::format("expected an object, got {}", server::kind_of(given)));
  }
  Fields fields(given);
  for (const auto& [name, value] : given.items()) {
    if (name != "models" && name != "defaults") {
      fields.fail(name, "there is no such member; there are models, defaults");
    }
  }
  const Json defaults = read_defaults(fields, folder);
  fields.required("models");
  std::vector<ModelPreset> presets;
  for (const auto& [name, value] : fields.object("models")->items()) {
    presets.push_back(read_preset(name, over_defaults(value, defaults), "models." + name, folder));
  }
  if (presets.empty()) {
    fields.fail("models", "there are no models");
  }
  return presets;
}

}  // namespace

std::vector<ModelPreset> read_presets(const fs::path& file) {
  const PresetsText text(file);
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  try {
    return read_models(text.json(), folder);
  } catch (const server::ApiError& error) {
    throw Error(ErrorCode::kInvalidArgument, text.located(error.param(), error.what()));
  }
}

}  // namespace saker::cli
