// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/doctor/machine.h"

#include "saker/base/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>
#include <system_error>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

namespace saker::cli {
namespace {

namespace fs = std::filesystem;

// At most this much of a file of the system is read.
constexpr std::size_t kMaxBytes = 256 << 10;

std::string begin_of(const fs::path& path) {
  std::string text(kMaxBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\"";
  const std::size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

// The text behind `name` and the separator on its line; empty without such a line.
std::string field(std::string_view text, std::string_view name, char separator) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t at = line.find(separator);
    if (at != std::string_view::npos && trimmed(line.substr(0, at)) == name) {
      return std::string(trimmed(line.substr(at + 1)));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

std::string system_text() {
  std::string text = field(begin_of("/etc/os-release"), "PRETTY_NAME", '=');
  utsname names{};
  if (::uname(&names) == 0) {
    text += fmt::format(
        "{}{} {} {}", text.empty() ? "" : ", ", names.sysname, names.release, names.machine
    );
  }
#if defined(__GLIBC__)
  text += fmt::format(", glibc {}", gnu_get_libc_version());
#endif
  return text;
}

std::string processor_text() {
  const std::string facts = begin_of("/proc/cpuinfo");
  for (const std::string_view name : {"model name", "Hardware", "CPU part"}) {
    if (std::string found = field(facts, name, ':'); !found.empty()) {
      return found;
    }
  }
  return {};
}

int usable_processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    return CPU_COUNT(&set);
  }
#endif
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

// "150000 100000" of cgroups version 2 is 1.5 processors.
std::string quota_text() {
  const std::string text = begin_of("/sys/fs/cgroup/cpu.max");
  double quota = 0;
  double period = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, quota);
  if (first.ec != std::errc() || first.ptr == end) {
    return {};
  }
  const auto second = std::from_chars(first.ptr + 1, end, period);
  return second.ec == std::errc() && period > 0 ? fmt::format("{:.4g}", quota / period)
                                                : std::string();
}

// A field of /proc/meminfo, which is in kB.
std::size_t memory_field(std::string_view name) {
  const std::string text = field(begin_of("/proc/meminfo"), name, ':');
  std::size_t kilobytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), kilobytes);
  return kilobytes << 10;
}

// The word in brackets: "always [madvise] never".
std::string chosen_word(const std::string& text) {
  const std::size_t begin = text.find('[');
  const std::size_t end = text.find(']');
  return begin == std::string::npos || end == std::string::npos || end < begin
             ? std::string()
             : text.substr(begin + 1, end - begin - 1);
}

std::vector<Limit> process_limits() {
  struct Known {
    const char* name;
    int resource;
  };

  constexpr Known kKnown[] = {
      {"address space", RLIMIT_AS},
      {"data", RLIMIT_DATA},
      {"locked memory", RLIMIT_MEMLOCK},
      {"open files", RLIMIT_NOFILE},
      {"processes", RLIMIT_NPROC},
      {"file size", RLIMIT_FSIZE},
  };
  std::vector<Limit> limits;
  for (const Known& known : kKnown) {
    rlimit limit{};
    if (::getrlimit(known.resource, &limit) == 0) {
      limits.push_back(
          {known.name,
           limit.rlim_cur == RLIM_INFINITY ? std::nullopt : std::optional(limit.rlim_cur)}
      );
    }
  }
  return limits;
}

std::string first_line(const fs::path& path) {
  const std::string text = begin_of(path);
  return std::string(trimmed(std::string_view(text).substr(0, text.find('\n'))));
}

}  // namespace

Machine look_at_machine() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  return {
      .system = system_text(),
      .processor = processor_text(),
      .processors = usable_processors(),
      .machine_processors = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)),
      .processor_quota = quota_text(),
      .memory_bytes = pages > 0 && page_bytes > 0
                          ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes)
                          : 0,
      .usable_bytes = usable_memory_bytes(),
      .available_bytes = memory_field("MemAvailable"),
      .huge_pages = chosen_word(begin_of("/sys/kernel/mm/transparent_hugepage/enabled")),
      .gpu_driver = first_line("/proc/driver/nvidia/version"),
      .limits = process_limits(),
  };
}

std::optional<std::uintmax_t> free_bytes(const fs::path& path) {
  std::error_code failed;
  fs::path at = fs::absolute(path, failed);
  while (!fs::exists(at, failed) && at.has_relative_path()) {
    at = at.parent_path();
  }
  const fs::space_info space = fs::space(at, failed);
  return failed ? std::nullopt : std::optional(space.available);
}

}  // namespace saker::cli
