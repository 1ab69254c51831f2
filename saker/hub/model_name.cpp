// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/model_name.h"

#include "saker/base/characters/letter_case.h"
#include "saker/base/characters/printable.h"
#include "saker/base/characters/utf8_character.h"
#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/hub/environment.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace saker::hub {
namespace {

constexpr std::string_view kOllama = "ollama:";
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

// Without everything from '?' or '#' on, and without trailing slashes.
std::string_view plain_address(std::string_view text) {
  text = text.substr(0, text.find_first_of("?#"));
  while (text.ends_with('/')) {
    text.remove_suffix(1);
  }
  return text;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return ascii_lower(a) == ascii_lower(b);
}

// The text behind "huggingface.co/" and its like; empty if it is no such address.
std::optional<std::string_view> path_at_hub(std::string_view text) {
  constexpr std::array<std::string_view, 3> kSchemes{"https://", "http://", ""};
  constexpr std::array<std::string_view, 3> kHosts{
      "huggingface.co/", "hf.co/", "www.huggingface.co/"
  };
  const auto after = [&](std::string_view beginning) -> std::optional<std::string_view> {
    return equal_ignoring_case(text.substr(0, beginning.size()), beginning)
               ? std::optional(text.substr(beginning.size()))
               : std::nullopt;
  };
  if (const auto path = after(endpoint() + "/")) {
    return path;
  }
  for (const std::string_view scheme : kSchemes) {
    for (const std::string_view host : kHosts) {
      if (const auto path = after(std::string(scheme) + std::string(host))) {
        return path;
      }
    }
  }
  return after("hf://");
}

// Decodes %XX; anything else stays.
std::string percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      decoded += static_cast<char>(value);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

bool has_owner(std::string_view repo) {
  return repo.find('/') != std::string_view::npos;
}

// Parses "REPO", "REPO:FILE", "REPO@REVISION", and both in either order.
std::optional<ModelName> parse_plain(std::string_view text) {
  const std::size_t end = std::min(text.find_first_of(":@"), text.size());
  ModelName name{.repo = std::string(text.substr(0, end))};
  bool is_name = is_repo(name.repo);
  for (text.remove_prefix(end); is_name && !text.empty();) {
    const bool is_choice = text.front() == ':';
    // A revision may contain '@', but no branch or tag of git contains ':'.
    const std::size_t next = std::min(text.find(is_choice ? '@' : ':', 1), text.size());
    std::string& part = is_choice ? name.file : name.revision;
    is_name = part.empty();
    part = text.substr(1, next - 1);
    // Names of other registries ("qwen3:0.6b") have no owner.
    is_name =
        is_name && (is_choice ? is_file_choice(part) && has_owner(name.repo) : is_revision(part));
    text.remove_prefix(next);
  }
  return is_name ? std::optional(std::move(name)) : std::nullopt;
}

// Parses "ORG/NAME/blob/REVISION/FILE" and its like. Only GGUF files are models by themselves: the
// page of any other file means the whole model.
std::optional<ModelName> parse_page(std::string_view path) {
  const std::string_view text = plain_address(path);
  const std::size_t slash = text.find('/');
  const std::size_t end = text.find('/', slash + 1);
  if (slash == std::string_view::npos || end == std::string_view::npos) {
    return std::nullopt;
  }
  ModelName name{.repo = std::string(text.substr(0, end))};
  const std::string_view rest = text.substr(end + 1);
  const std::size_t kind_end = std::min(rest.find('/'), rest.size());
  const std::string_view kind = rest.substr(0, kind_end);
  const std::string_view place = rest.substr(std::min(kind_end + 1, rest.size()));
  const std::size_t revision_end = std::min(place.find('/'), place.size());
  name.revision = percent_decode(place.substr(0, revision_end));
  const std::string file = percent_decode(place.substr(std::min(revision_end + 1, place.size())));
  const bool is_file = kind == "blob" || kind == "resolve" || kind == "raw";
  const bool is_tree = (kind == "tree" || kind == "commit") && file.empty();
  const bool has_colon = name.revision.find(':') != std::string::npos;  // As no ref of git.
  if (!is_repo(name.repo) || !is_revision(name.revision) || has_colon || (!is_file && !is_tree)) {
    return std::nullopt;
  }
  if (file.ends_with(".gguf")) {
    name.file = file;
  }
  return name.file.empty() || is_file_choice(name.file) ? std::optional(std::move(name))
                                                        : std::nullopt;
}

}  // namespace

std::optional<ModelName> parse_model_name(std::string_view text) {
  if (text.starts_with(kOllama)) {
    return std::nullopt;  // Of another registry, whatever follows.
  }
  const auto path = path_at_hub(text);
  if (!path) {
    return parse_plain(text);
  }
  auto name = parse_page(*path);
  if (!name) {
    name = parse_plain(plain_address(*path));
  }
  // Pages of the hub itself ("hf.co/models") have no slash, and no owner is called "hf.co".
  return name && has_owner(name->repo) && !path_at_hub(name->repo) ? std::move(name) : std::nullopt;
}

ModelName require_model_name(std::string_view text) {
  auto name = parse_model_name(text);
  require(
      name.has_value(),
      ErrorCode::kInvalidArgument,
      "{} is no name of a model, expected {}",
      quote(text),
      name_hint(text)
  );
  return *std::move(name);
}

std::string name_hint(std::string_view text) {
  std::string hint = "ORG/NAME, maybe with @REVISION, or :FILE for one GGUF file";
  if (text.find("://") != std::string_view::npos) {
    return hint + ", or an address of the hub";
  }
  // For instance "qwen3:0.6b".
  const bool is_short = text.find(':') != std::string_view::npos && !has_owner(text);
  return is_short && !text.starts_with(kOllama)
             ? hint + "; a model of ollama is ollama:" + std::string(text)
             : hint;
}

std::string to_string(const ModelName& name) {
  std::string text = name.repo;
  if (!name.file.empty()) {
    text += ":" + name.file;
  }
  if (!name.revision.empty()) {
    text += "@" + name.revision;
  }
  return text;
}

bool is_file_choice(std::string_view text) {
  return is_file_path(text) && text.front() != '-' &&
         text.find_first_of(":@") == std::string_view::npos;
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
