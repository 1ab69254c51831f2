// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the scripts of random operations share. SAKER_PROPERTY_STEPS sets how many operations each
// kind gets; the numbers are fixed, so that a failure comes again.

#include "saker/base/error.h"
#include "saker/caches/cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace saker::caches {

inline int steps() {
  const char* given = std::getenv("SAKER_PROPERTY_STEPS");
  return given == nullptr ? 20000 : static_cast<int>(std::strtod(given, nullptr));  // 1e6 too.
}

class Draw {
 public:
  // In [low, high].
  int operator()(int low, int high) { return std::uniform_int_distribution(low, high)(engine_); }

 private:
  std::mt19937 engine_{7};
};

inline void refuse(
    Cache& cache, const std::vector<mx::array>& state, const std::vector<std::string>& meta
) {
  EXPECT_THROW(cache.from_serialized(state, meta), Error);
}

// Serialized values that no cache may take; it must stay as it was.
inline void refuse_bad_values(Cache& cache) {
  auto state = cache.state();
  auto meta = cache.meta_state();
  meta.emplace_back("x");
  refuse(cache, state, meta);
  if (!state.empty()) {
    meta.pop_back();
    state[0] = mx::array(0.0F);
    refuse(cache, state, meta);
  }
}

// Through a copy, or through the serialized form; a cache must go on as the original.
inline std::unique_ptr<Cache> replaced(const Cache& cache, Draw& draw) {
  return draw(0, 1) == 0 ? cache.copy()
                         : from_state(cache.kind(), cache.state(), cache.meta_state());
}

}  // namespace saker::caches
