// SPDX-License-Identifier: Apache-2.0
#include "saker/base/memory.h"

#include <sys/resource.h>

#include <cstddef>

namespace saker {

std::size_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  constexpr std::size_t kUnit = 1;
#else
  constexpr std::size_t kUnit = 1024;
#endif
  return static_cast<std::size_t>(usage.ru_maxrss) * kUnit;
}

}  // namespace saker
