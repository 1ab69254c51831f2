// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/environment.h"

#include "saker/base/characters/letter_case.h"
#include "saker/base/error.h"
#include "saker/base/mapped_file.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace saker::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEndpoint = "https://huggingface.co";
constexpr std::size_t kMaxTokenFile = 4096;
constexpr int kDefaultTimeout = 10;
constexpr int kMaxTimeout = 3600;

// The variable's value if it is set and not empty.
std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

fs::path user_home() {
  return variable("HOME").value_or("/");
}

std::string expand_variables(std::string_view text) {
  constexpr std::string_view kName =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  std::string expanded;
  std::size_t done = 0;
  for (std::size_t at = text.find('$'); at != text.npos;
       at = text.find('$', std::max(at + 1, done))) {
    const bool braced = text.substr(at + 1).starts_with('{');
    const std::size_t begin = at + (braced ? 2 : 1);
    const std::size_t end = braced ? text.find('}', begin)
                                   : std::min(text.find_first_not_of(kName, begin), text.size());
    if (end == text.npos) {
      continue;
    }
    if (const char* value = std::getenv(std::string(text.substr(begin, end - begin)).c_str())) {
      expanded.append(text.substr(done, at - done)).append(value);
      done = end + (braced ? 1 : 0);
    }
  }
  return expanded.append(text.substr(done));
}

// As Python's os.path.expanduser, then os.path.expandvars.
fs::path expand(const std::string& path) {
  const bool at_home = path == "~" || path.starts_with("~/");
  return expand_variables(
      at_home ? (user_home() / path.substr(std::min<std::size_t>(2, path.size()))).native() : path
  );
}

fs::path hub_home() {
  if (const auto home = variable("HF_HOME")) {
    return expand(*home);
  }
  const auto cache = variable("XDG_CACHE_HOME");
  return (cache ? expand(*cache) : user_home() / ".cache") / "huggingface";
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::string checked_token(std::string_view text, std::string_view source) {
  const std::string_view token = trim(text);
  require(
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; }),
      ErrorCode::kInvalidArgument,
      "the token in {} holds other characters than letters, digits and signs",
      source
  );
  return std::string(token);
}

bool is_yes(std::string_view word) {
  const std::string text = ascii_lower(word);
  return text == "1" || text == "true" || text == "yes" || text == "on";
}

}  // namespace

fs::path cache_dir() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto cache = variable(name)) {
      return expand(*cache);
    }
  }
  return hub_home() / "hub";
}

std::string endpoint() {
  std::string address = variable("HF_ENDPOINT").value_or(std::string(kEndpoint));
  while (address.ends_with('/')) {
    address.pop_back();
  }
  return address;
}

std::string token() {
  if (is_yes(variable("HF_HUB_DISABLE_IMPLICIT_TOKEN").value_or(""))) {
    return {};
  }
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (const auto text = variable(name)) {
      return checked_token(*text, name);
    }
  }
  const auto given = variable("HF_TOKEN_PATH");
  const fs::path file = given ? expand(*given) : hub_home() / "token";
  std::error_code ignored;
  return fs::is_regular_file(file, ignored)
             ? checked_token(read_file(file, kMaxTokenFile), file.native())
             : std::string();
}

bool is_offline() {
  for (const char* name : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}) {
    if (const auto text = variable(name)) {
      return is_yes(*text);
    }
  }
  return false;
}

std::string http_proxy() {
  const bool set_aside =
      std::getenv("http_proxy") != nullptr || std::getenv("REQUEST_METHOD") != nullptr;
  return set_aside ? std::string() : variable("HTTP_PROXY").value_or("");
}

std::chrono::seconds download_timeout() {
  int seconds = kDefaultTimeout;
  if (const auto text = variable("HF_HUB_DOWNLOAD_TIMEOUT")) {
    const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), seconds);
    require(
        failed == std::errc() && end == text->data() + text->size() && seconds >= 1 &&
            seconds <= kMaxTimeout,
        ErrorCode::kInvalidArgument,
        "HF_HUB_DOWNLOAD_TIMEOUT is '{}', expected seconds from 1 to {}",
        *text,
        kMaxTimeout
    );
  }
  return std::chrono::seconds(seconds);
}

}  // namespace saker::hub
