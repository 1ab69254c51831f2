// SPDX-License-Identifier: Apache-2.0
#include "saker/base/control_group.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace saker {
namespace {

namespace fs = std::filesystem;

// The file of a group's limit: the root folder of all groups, the group, and the file's name.
struct Place {
  fs::path root;
  fs::path group;
  std::string_view file;
};

// The place that a line "ID:CONTROLLERS:PATH" names; empty unless it is about memory.
std::optional<Place> place_of(std::string_view line, const fs::path& root) {
  const auto first = line.find(':');
  const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
  if (second == std::string_view::npos) {
    return std::nullopt;
  }
  const auto controllers = line.substr(first + 1, second - first - 1);
  const fs::path group = fs::path(line.substr(second + 1)).relative_path();
  if (controllers.empty()) {
    return Place{root, group, "memory.max"};
  }
  const std::string listed = "," + std::string(controllers) + ",";
  return listed.find(",memory,") == std::string::npos
             ? std::nullopt
             : std::optional(Place{root / "memory", group, "memory.limit_in_bytes"});
}

// No limit if the file is missing or holds no number.
std::size_t limit_in(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t bytes = 0;
  return in >> bytes ? static_cast<std::size_t>(bytes) : SIZE_MAX;
}

}  // namespace

std::size_t group_memory_bytes(const fs::path& list, const fs::path& root) {
  std::size_t result = SIZE_MAX;
  std::ifstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    const auto place = place_of(line, root);
    if (!place) {
      continue;
    }
    // In a container the path may be the host's: then only the outermost folder exists.
    for (fs::path group = place->group;; group = group.parent_path()) {
      result = std::min(result, limit_in(place->root / group / place->file));
      if (group.empty()) {
        break;
      }
    }
  }
  return result;
}

}  // namespace saker
