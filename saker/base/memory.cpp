// SPDX-License-Identifier: Apache-2.0
#include "saker/base/memory.h"

#include "saker/base/control_group.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

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

std::int64_t cold_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_majflt;
}

std::size_t usable_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  const bool known = pages > 0 && page_bytes > 0;
  const std::size_t machine = known ? static_cast<std::size_t>(pages) * page_bytes : SIZE_MAX;
  return std::min(machine, group_memory_bytes("/proc/self/cgroup", "/sys/fs/cgroup"));
}

bool keep_freed_memory([[maybe_unused]] int bytes) {
#if defined(__GLIBC__)
  // Arenas of further threads return all the memory that they can, so we allow one for all.
  return mallopt(M_ARENA_MAX, 1) == 1 && mallopt(M_TRIM_THRESHOLD, bytes) == 1 &&
         mallopt(M_MMAP_THRESHOLD, bytes) == 1;
#else
  return false;
#endif
}

void return_freed_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

std::optional<std::string_view> out_of_memory_reason(const std::exception& error) {
  if (const auto* refused = dynamic_cast<const std::system_error*>(&error);
      refused != nullptr && refused->code() == std::errc::resource_unavailable_try_again) {
    return "the system gives this process no more threads (ulimit -u, or a container's limit)";
  }
  const std::string_view text = error.what();
  const std::array<std::string_view, 4> starts = {
      std::bad_alloc().what(), "[memory] ", "[malloc] ", "[metal::malloc] "
  };
  if (std::ranges::any_of(starts, [&](std::string_view start) {
        return text.starts_with(start);
      })) {
    return "there is not enough memory";
  }
  return std::nullopt;
}

}  // namespace saker
