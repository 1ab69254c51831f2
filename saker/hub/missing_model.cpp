// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/missing_model.h"

#include "saker/hub/environment.h"
#include "saker/hub/repo_cache.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace saker::hub {
namespace {

namespace fs = std::filesystem;

// A file that describes a model or an adapter is there: a name in the cache may hold other files.
bool is_cached(const ModelName& name) {
  const auto snapshot = RepoCache(cache_dir(), name.repo).find_snapshot(name.revision);
  std::error_code ignored;
  return snapshot && (fs::exists(*snapshot / "config.json", ignored) ||
                      fs::exists(*snapshot / "adapter_config.json", ignored));
}

}  // namespace

std::optional<ModelName> missing_model(std::string_view text) {
  std::error_code ignored;
  auto name = parse_model_name(text);
  return name && !fs::exists(text, ignored) && !is_cached(*name) ? std::move(name) : std::nullopt;
}

}  // namespace saker::hub
