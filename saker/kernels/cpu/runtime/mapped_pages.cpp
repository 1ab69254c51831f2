// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/runtime/mapped_pages.h"

#include "saker/base/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace saker::kernels {

bool finds_pages_cold() noexcept {
  thread_local std::int64_t last = 0;
  const std::int64_t faults = cold_faults();
  return std::exchange(last, faults) != faults;
}

void will_need(const std::byte* data, std::size_t bytes) noexcept {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t before = reinterpret_cast<std::uintptr_t>(data) % page;
  auto* const first = const_cast<std::byte*>(data) - before;
  // A hint: if it fails, the pages are read when they are used.
  static_cast<void>(madvise(first, bytes + before, MADV_WILLNEED));
}

}  // namespace saker::kernels
