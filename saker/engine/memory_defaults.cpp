// SPDX-License-Identifier: Apache-2.0
#include "saker/base/memory.h"
#include "saker/engine/engine.h"

namespace saker::engine {

std::size_t default_prefix_cache_bytes() {
  return usable_memory_bytes() / 8;
}

std::size_t default_cache_memory_bytes() {
  return usable_memory_bytes() / 4 * 3;
}

}  // namespace saker::engine
