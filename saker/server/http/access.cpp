// SPDX-License-Identifier: Apache-2.0
#include "saker/server/http/access.h"

#include "saker/base/blake2b.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace saker::server::http {
namespace {

std::string hash_of(std::string_view text) {
  Blake2b hash;
  hash.add(text);
  return hash.hex();
}

// Takes equally long whatever the texts have in common.
bool equal_in_constant_time(std::string_view left, std::string_view right) {
  unsigned difference = left.size() == right.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    difference |= static_cast<unsigned char>(left[i]) ^ static_cast<unsigned char>(right[i]);
  }
  return difference == 0;
}

// The name without its port.
std::string_view host_name(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end == std::string_view::npos ? std::string_view() : host.substr(0, end + 1);
  }
  return host.substr(0, host.find(':'));
}

// Strangers can't make an address mean another one, as they can with a name.
bool is_address(std::string_view name) {
  return !name.empty() &&
         (name.starts_with('[') || name.find_first_not_of("0123456789.") == std::string_view::npos);
}

bool is_localhost(std::string_view name) {
  return same_name(name, "localhost") ||
         (name.size() > 10 && same_name(name.substr(name.size() - 10), ".localhost"));
}

bool is_loopback_address(std::string_view name) {
  return name == "[::1]" || (is_address(name) && name.starts_with("127."));
}

std::string_view without_scheme(std::string_view origin) {
  const std::size_t end = origin.find("://");
  return end == std::string_view::npos ? std::string_view() : origin.substr(end + 3);
}

bool is_list_of_names(std::string_view text) {
  constexpr std::size_t kMost = 1024;
  return text.size() <= kMost && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("-_, ").find(c) != std::string_view::npos;
         });
}

}  // namespace

Access::Access(AccessOptions options)
    : hosts_(std::move(options.hosts)), origins_(std::move(options.origins)) {
  for (ApiKey& key : options.keys) {
    keys_.push_back({{std::move(key.name), key.priority}, hash_of(key.key)});
  }
}

bool Access::is_own_host(std::string_view host) const {
  const std::string_view name = host_name(host);
  // A page of strangers has no key, so that a name of theirs gains nothing. Browsers send a Host.
  return !keys_.empty() || host.empty() || is_address(name) || is_localhost(name) ||
         std::ranges::any_of(hosts_, [&](const std::string& own) {
           return same_name(own, name) || same_name(own, host);
         });
}

bool Access::is_allowed_origin(const Request& request, std::string_view origin) const {
  const std::string_view host = without_scheme(origin);
  const std::string_view name = host_name(host);
  return (!host.empty() && same_name(host, request.header("Host"))) || is_localhost(name) ||
         is_loopback_address(name) || std::ranges::any_of(origins_, [&](const std::string& own) {
           return own == "*" || same_name(own, origin);
         });
}

std::optional<Denial> Access::check_source(const Request& request) const {
  const std::string_view host = request.header("Host");
  if (!is_own_host(host)) {
    return Denial{
        403, fmt::format("Host {} is no name of this server; --allow-host adds one", quote(host))
    };
  }
  if (request.count("Origin") > 1) {
    return Denial{400, "expected one Origin header"};
  }
  const std::string_view origin = request.header("Origin");
  if (!origin.empty() && !is_allowed_origin(request, origin)) {
    return Denial{
        403,
        fmt::format("pages of {} may not send requests; --allow-origin adds one", quote(origin))
    };
  }
  return std::nullopt;
}

std::optional<Caller> Access::caller(const Request& request) const {
  if (keys_.empty()) {
    return Caller();
  }
  constexpr std::string_view kBearer = "bearer ";
  std::string_view given = request.header("X-Api-Key");
  const std::string_view authorization = request.header("Authorization");
  if (given.empty() && authorization.size() > kBearer.size() &&
      same_name(authorization.substr(0, kBearer.size()), kBearer)) {
    given = authorization.substr(kBearer.size());
  }
  const std::string hash = hash_of(given);
  const HashedKey* found = nullptr;
  for (const HashedKey& key : keys_) {
    found = equal_in_constant_time(key.hash, hash) ? &key : found;
  }
  return found == nullptr ? std::nullopt : std::optional(found->holder);
}

std::vector<Header> Access::cors(const Request& request) const {
  const std::string_view origin = request.header("Origin");
  if (origin.empty() || !is_header_value(origin)) {
    return {};
  }
  return {
      {"Access-Control-Allow-Origin", std::string(origin)},
      {"Vary", "Origin"},
      {"Access-Control-Expose-Headers", "x-request-id, request-id, retry-after, traceparent"},
  };
}

Response Access::preflight(const Request& request) const {
  Response response{.status = 204, .content_type = "", .headers = cors(request)};
  const std::string_view asked = request.header("Access-Control-Request-Headers");
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE, OPTIONS");
  response.headers.emplace_back(
      "Access-Control-Allow-Headers",
      !asked.empty() && is_list_of_names(asked) ? std::string(asked)
                                                : "authorization, content-type, x-api-key"
  );
  response.headers.emplace_back("Access-Control-Max-Age", "600");
  return response;
}

}  // namespace saker::server::http
