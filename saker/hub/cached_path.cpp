// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/cached_path.h"

#include "saker/base/error.h"
#include "saker/hub/gguf_choice.h"
#include "saker/hub/repo_cache.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace saker::hub {

namespace fs = std::filesystem;

std::optional<fs::path> cached_path(const fs::path& cache, const ModelName& name) {
  const auto snapshot = RepoCache(cache, name.repo).find_snapshot(name.revision);
  if (!snapshot) {
    return std::nullopt;
  }
  const auto files = snapshot_files(*snapshot);
  if (name.file.empty() && has_safetensors(files)) {
    return snapshot;
  }
  const auto models = gguf_models(files);
  if (name.file.empty() && models.empty()) {
    return snapshot;
  }
  try {
    return *snapshot / choose_gguf(models, name.file, to_string(name)).path;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) {
      throw;
    }
    return std::nullopt;
  }
}

std::vector<std::string> snapshot_files(const fs::path& snapshot) {
  std::vector<std::string> files;
  std::error_code failed;
  for (fs::recursive_directory_iterator it(snapshot, failed), end; !failed && it != end;
       it.increment(failed)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) {
      files.push_back(it->path().lexically_relative(snapshot).native());
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace saker::hub
