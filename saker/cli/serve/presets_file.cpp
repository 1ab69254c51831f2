// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/serve/presets_file.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/load/files/adapter_files.h"
#include "saker/server/models/keep_alive.h"
#include "saker/server/turns/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>

namespace saker::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 12> kMembers = {
    "model",
    "aliases",
    "adapters",
    "draft",
    "context",
    "batch",
    "kv_bits",
    "prefix_cache",
    "cache_memory",
    "sampling",
    "pinned",
    "keep_alive"
};

void refuse_others(const Json& object, const std::string& path) {
  for (const auto& [name, value] : object.items()) {
    require(
        std::ranges::find(kMembers, name) != kMembers.end(),
        ErrorCode::kInvalidArgument,
        "{}: there is no member {}; there are {}",
        path,
        quote(name),
        fmt::join(kMembers, ", ")
    );
  }
}

// A path relative to the file, if something is there; else as it is: perhaps a repo id.
std::string beside(const fs::path& folder, const std::string& path) {
  std::error_code ignored;
  return !path.empty() && fs::exists(folder / path, ignored) ? (folder / path).string() : path;
}

std::vector<engine::NamedAdapter> read_adapters(server::Fields& fields, const fs::path& folder) {
  std::vector<engine::NamedAdapter> adapters;
  const Json* given = fields.object("adapters");
  if (given == nullptr) {
    return adapters;
  }
  server::Fields named(*given, fields.path_of("adapters"));
  for (const auto& [name, value] : given->items()) {
    const fs::path path = beside(folder, named.text(name).value_or(""));
    if (!load::may_be_adapter(path)) {
      named.fail(name, fmt::format("{} is no folder and no GGUF file", quote_path(path)));
    }
    adapters.push_back({name, path});
  }
  engine::check_adapter_names(adapters);
  return adapters;
}

ModelPreset read_preset(const std::string& name, const Json& given, const fs::path& folder) {
  constexpr int kMostRequests = 1024;
  const std::string path = "models." + name;
  server::Fields fields(given, path);
  refuse_others(given, path);
  ModelPreset preset;
  fields.required("model");
  preset.model = beside(folder, *fields.text("model"));
  preset.names = fields.texts("aliases");
  preset.names.insert(preset.names.begin(), name);
  preset.adapters = read_adapters(fields, folder);
  if (const auto draft = fields.text("draft")) {
    preset.draft = beside(folder, *draft);
  }
  if (const auto batch = fields.integer("batch", 1, kMostRequests)) {
    preset.batch = static_cast<int>(*batch);
  }
  preset.prefix_cache = fields.text("prefix_cache");
  preset.cache_memory = fields.text("cache_memory");
  if (fields.has("keep_alive")) {
    preset.keep_alive = server::read_keep_alive(given);
  }
  preset.is_pinned = fields.flag("pinned").value_or(false);
  preset.preset.context = fields.integer("context", 1).value_or(0);
  preset.preset.kv_bits = static_cast<int>(fields.integer("kv_bits", 0, 32).value_or(0));
  if (const Json* sampling = fields.object("sampling")) {
    preset.preset.sampling = *sampling;
  }
  engine::check_preset(preset.preset);
  return preset;
}

}  // namespace

std::vector<ModelPreset> read_presets(const fs::path& file) {
  const Json given = read_json_file(file);
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::vector<ModelPreset> presets;
  try {
    server::Fields fields(given);
    fields.required("models");
    for (const auto& [name, value] : fields.object("models")->items()) {
      presets.push_back(read_preset(name, value, folder));
    }
  } catch (const server::ApiError& error) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", quote_path(file), error.what()));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", quote_path(file), error.what()));
  }
  require(!presets.empty(), ErrorCode::kInvalidArgument, "{}: no models", quote_path(file));
  return presets;
}

}  // namespace saker::cli
