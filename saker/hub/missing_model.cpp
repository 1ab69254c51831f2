// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/missing_model.h"

#include "saker/base/error.h"
#include "saker/hub/cached_path.h"
#include "saker/hub/environment.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace saker::hub {
namespace {

namespace fs = std::filesystem;

// True for a GGUF file, or a file that describes a model or an adapter; a name in the cache may
// hold only other files. If several match, loading reports it.
bool is_cached(const ModelName& name) {
  try {
    const auto path = cached_path(cache_dir(), name);
    std::error_code ignored;
    return path &&
           (fs::is_regular_file(*path, ignored) || fs::exists(*path / "config.json", ignored) ||
            fs::exists(*path / "adapter_config.json", ignored));
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

std::optional<ModelName> missing_model(std::string_view text) {
  std::error_code ignored;
  auto name = parse_model_name(text);
  return name && !fs::exists(text, ignored) && !is_cached(*name) ? std::move(name) : std::nullopt;
}

}  // namespace saker::hub
