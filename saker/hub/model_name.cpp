// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/model_name.h"

#include "saker/base/characters/printable.h"
#include "saker/base/characters/utf8_character.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace saker::hub {
namespace {

constexpr std::size_t kMaxName = 96;
constexpr std::size_t kMaxRevision = 255;
constexpr std::size_t kMaxPath = 1024;
constexpr std::size_t kMaxPart = 255;
constexpr std::size_t kSha1Digits = 40;
constexpr std::size_t kSha256Digits = 64;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

bool is_repo(std::string_view repo) {
  const std::size_t slash = repo.find('/');
  // The cache's folders are named with "--" between the parts.
  return repo.size() <= kMaxName && repo.find("--") == std::string_view::npos &&
         (slash == std::string_view::npos
              ? is_plain_name(repo)
              : is_plain_name(repo.substr(0, slash)) && is_plain_name(repo.substr(slash + 1)));
}

// Valid UTF-8 without control characters.
bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const auto [length, code] = first_character(text);
    if (length == 0 || is_control(code)) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

bool is_path_part(std::string_view part) {
  return !part.empty() && part.size() <= kMaxPart && part != "." && part != "..";
}

}  // namespace

std::optional<ModelName> parse_model_name(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::string_view repo = text.substr(0, at);
  if (!is_repo(repo)) {
    return std::nullopt;
  }
  if (at == std::string_view::npos) {
    return ModelName{.repo = std::string(repo), .revision = ""};
  }
  const std::string_view revision = text.substr(at + 1);
  return is_revision(revision) ? std::optional(ModelName{std::string(repo), std::string(revision)})
                               : std::nullopt;
}

std::string to_string(const ModelName& name) {
  return name.revision.empty() ? name.repo : name.repo + "@" + name.revision;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '-' || c == '_';
         });
}

bool is_revision(std::string_view name) {
  // A leading dash would be an option in commands that we suggest.
  return name.size() <= kMaxRevision && is_file_path(name) && name.front() != '-' &&
         name.find("..") == std::string_view::npos;
}

bool is_commit(std::string_view name) {
  return name.size() == kSha1Digits && is_hex(name);
}

bool is_digest(std::string_view name) {
  return (name.size() == kSha1Digits || name.size() == kSha256Digits) && is_hex(name);
}

bool is_file_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPath || path.find('\\') != std::string_view::npos ||
      !is_printable(path)) {
    return false;
  }
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (!is_path_part(path.substr(begin, end - begin))) {
      return false;
    }
    begin = end + 1;
  }
  return true;
}

}  // namespace saker::hub
