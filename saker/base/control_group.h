// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bounds that Linux's control groups, so containers too, set to a process. Source:
// cgroups(7), versions 1 and 2.

#include <cstddef>
#include <filesystem>

namespace saker {

// The smallest memory limit of the groups in `list` (a /proc/PID/cgroup) and of those around them,
// whose files are below `root`, in bytes; SIZE_MAX where there is none, or no such file.
std::size_t group_memory_bytes(
    const std::filesystem::path& list, const std::filesystem::path& root
);

}  // namespace saker
