// SPDX-License-Identifier: Apache-2.0
#pragma once

// This machine and the limits of this process, as the system tells them. Everything is bounded,
// nothing throws: what is not known is empty.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace saker::cli {

struct Limit {
  std::string name;                    // "open files"
  std::optional<std::uint64_t> value;  // Empty: unlimited.
};

struct Machine {
  std::string system;               // "Debian GNU/Linux 12 (bookworm), Linux 6.1.0, glibc 2.36"
  std::string processor;            // "AMD EPYC 9355"
  int processors = 0;               // Usable by this process.
  int machine_processors = 0;       // All.
  std::string processor_quota;      // A container's, in processors: "1.5"; empty: none.
  std::size_t memory_bytes = 0;     // All.
  std::size_t usable_bytes = 0;     // All, or a container's limit.
  std::size_t available_bytes = 0;  // Free, or freed when needed.
  std::string huge_pages;           // "madvise"
  std::string gpu_driver;           // NVIDIA's, by the kernel; empty: none.
  std::vector<Limit> limits;
};

Machine look_at_machine();

// Free bytes for the user on the file system of `path`, or of its nearest existing parent.
std::optional<std::uintmax_t> free_bytes(const std::filesystem::path& path);

}  // namespace saker::cli
