// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/prompt_cache.h"

#include "saker/base/error.h"
#include "saker/caches/kv.h"
#include "saker/caches/rotating.h"
#include "saker/load/prompt_cache.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace saker::caches {

PromptCache make_prompt_cache(int layers, std::optional<int> window) {
  const int rows = std::max(window.value_or(0), 0);
  const int keep = std::clamp(rows - 1, 0, cache::kRotatingDefaultKeep);
  PromptCache caches;
  for (int i = 0; i < layers; ++i) {
    if (window) {
      caches.push_back(std::make_shared<RotatingKVCache>(rows, keep));
    } else {
      caches.push_back(std::make_shared<KVCache>());
    }
  }
  return caches;
}

bool can_trim_prompt_cache(const PromptCache& caches) {
  return std::ranges::all_of(caches, [](const auto& cache) { return cache->is_trimmable(); });
}

int trim_prompt_cache(const PromptCache& caches, int count) {
  if (!can_trim_prompt_cache(caches)) {
    return 0;
  }
  std::optional<int> first;
  for (const auto& cache : caches) {
    const int trimmed = cache->trim(count);
    first = first.value_or(trimmed);
  }
  return first.value_or(0);
}

void save_prompt_cache(
    const std::filesystem::path& path, const PromptCache& caches, const Metadata& metadata
) {
  require(!caches.empty(), ErrorCode::kInvalidArgument, "[prompt cache] no caches to save");
  load::PromptCache file;
  file.metadata = metadata;
  for (const auto& cache : caches) {
    file.layers.push_back(to_serialized(*cache));
  }
  load::write_prompt_cache(path, file);
}

LoadedPromptCache load_prompt_cache(const std::filesystem::path& path) {
  load::PromptCache file = load::read_prompt_cache(path);
  LoadedPromptCache loaded{.caches = {}, .metadata = std::move(file.metadata)};
  for (cache::SerializedCache& layer : file.layers) {
    loaded.caches.push_back(from_state(std::move(layer)));
  }
  return loaded;
}

}  // namespace saker::caches
