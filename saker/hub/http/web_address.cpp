// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/http/web_address.h"

#include "saker/base/characters/letter_case.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace saker::hub {
namespace {

struct FreeAddress {
  void operator()(CURLU* address) const { curl_url_cleanup(address); }
};

using Address = std::unique_ptr<CURLU, FreeAddress>;

std::string part_of(const Address& address, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(address.get(), part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) {
    return {};
  }
  std::string copy = text;
  curl_free(text);
  return copy;
}

bool is_web(const Address& address) {
  const std::string scheme = part_of(address, CURLUPART_SCHEME);
  return (scheme == "http" || scheme == "https") && !part_of(address, CURLUPART_HOST).empty();
}

// Null if it can't be parsed.
Address parse(std::string_view text) {
  Address address(curl_url());
  const bool parsed =
      address != nullptr &&
      curl_url_set(address.get(), CURLUPART_URL, std::string(text).c_str(), CURLU_DISALLOW_USER) ==
          CURLUE_OK;
  return parsed && is_web(address) ? std::move(address) : nullptr;
}

}  // namespace

std::optional<Origin> origin_of(std::string_view text) {
  const Address address = parse(text);
  if (address == nullptr) {
    return std::nullopt;
  }
  Origin origin{
      .scheme = part_of(address, CURLUPART_SCHEME),
      .host = part_of(address, CURLUPART_HOST),
      .port = part_of(address, CURLUPART_PORT),
  };
  origin.host = ascii_lower(origin.host);
  return origin;
}

std::optional<std::string> resolve_location(std::string_view base, std::string_view location) {
  const Address address = parse(base);
  const bool resolved = address != nullptr && curl_url_set(
                                                  address.get(),
                                                  CURLUPART_URL,
                                                  std::string(location).c_str(),
                                                  CURLU_DISALLOW_USER | CURLU_URLENCODE
                                              ) == CURLUE_OK;
  if (!resolved || !is_web(address)) {
    return std::nullopt;
  }
  char* text = nullptr;
  if (curl_url_get(address.get(), CURLUPART_URL, &text, 0) != CURLUE_OK) {
    return std::nullopt;
  }
  std::string whole = text;
  curl_free(text);
  return whole;
}

std::optional<std::string> path_below(std::string_view base, std::string_view text) {
  const Address address = parse(text);
  if (address == nullptr || origin_of(base) != origin_of(text)) {
    return std::nullopt;
  }
  std::string folder = part_of(parse(base), CURLUPART_PATH);
  while (folder.ends_with('/')) {
    folder.pop_back();
  }
  const std::string path = part_of(address, CURLUPART_PATH);
  if (!path.starts_with(folder + "/")) {
    return std::nullopt;
  }
  const std::string query = part_of(address, CURLUPART_QUERY);
  return path.substr(folder.size()) + (query.empty() ? "" : "?" + query);
}

std::string without_user(std::string_view address) {
  const std::size_t end = address.rfind('@');
  if (end == std::string_view::npos) {
    return std::string(address);
  }
  const std::size_t colon = address.find(':');
  const bool has_scheme = colon < end && address.substr(colon).starts_with("://");
  const std::size_t begin = has_scheme ? colon + 3 : 0;
  return fmt::format("{}***{}", address.substr(0, begin), address.substr(end));
}

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace saker::hub
