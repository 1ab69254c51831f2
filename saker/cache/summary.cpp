// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/summary.h"

#include "saker/cache/paged.h"
#include "saker/cache/recurrent.h"

#include <fmt/ranges.h>

#include <cstddef>
#include <vector>

namespace saker::cache {

namespace {

std::string describe(const LayerCache& layer) {
  if (const auto* recurrent = dynamic_cast<const RecurrentCache*>(&layer)) {
    if (recurrent->is_empty()) {
      return "ssm=None";
    }
    return fmt::format("ssm=({})", fmt::join(recurrent->state().back().shape(), ", "));
  }
  if (dynamic_cast<const PagedCache*>(&layer) != nullptr) {
    return fmt::format("kv={}", layer.offset());
  }
  return "none";
}

}  // namespace

std::string cache_summary(const SequenceCache& cache) {
  std::vector<std::string> layers;
  layers.reserve(static_cast<std::size_t>(cache.layer_count()));
  for (int i = 0; i < cache.layer_count(); ++i) {
    layers.push_back(fmt::format("{}:{}", i, describe(cache.layer(i))));
  }
  return fmt::format("{}", fmt::join(layers, " "));
}

}  // namespace saker::cache
