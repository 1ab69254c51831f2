// SPDX-License-Identifier: Apache-2.0
#pragma once

// Limits that Linux control groups, and so containers, set for a process. Source: cgroups(7),
// versions 1 and 2.

#include <cstddef>
#include <filesystem>

namespace saker {

// The smallest memory limit, in bytes, of the groups in `list` (a /proc/PID/cgroup) and of their
// parents, whose files are below `root`. SIZE_MAX without a limit or without such a file.
std::size_t group_memory_bytes(
    const std::filesystem::path& list, const std::filesystem::path& root
);

}  // namespace saker
