// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the checks of a serialized cache share: requirements and meta values that name its kind.

#include "saker/base/error.h"
#include "saker/cache/serialized.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace saker::cache {

// Throws kCorruptData with the cache's kind and `problem` unless `ok`.
inline void require_data(bool ok, const SerializedCache& cache, const std::string& problem) {
  require(ok, ErrorCode::kCorruptData, "{}: {}", cache.kind, problem);
}

// The meta value at `index`, called `name` in messages. Throws as `meta_integer`.
inline std::int64_t integer(
    const SerializedCache& cache, std::size_t index, std::string_view name
) {
  return meta_integer(cache.meta[index], fmt::format("{}: {}", cache.kind, name));
}

}  // namespace saker::cache
