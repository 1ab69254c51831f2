// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who may send requests: names in Host (pages of strangers that point a name of theirs to this
// machine), origins of web pages, API keys. Immutable; any thread may call any member.

#include "saker/server/http/caller.h"
#include "saker/server/http/message.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::server::http {

// A key, the name that logs show for it, and what its holder may have.
struct ApiKey {
  std::string name;
  std::string key;
  int priority = 0;             // See Caller.
  int requests_per_minute = 0;  // 0: any number; so below.
  std::int64_t tokens_per_minute = 0;
};

struct AccessOptions {
  std::vector<std::string> hosts = {};    // More names that Host may have.
  std::vector<std::string> origins = {};  // More origins, such as "https://chat.example"; "*": any.
  std::vector<ApiKey> keys = {};          // None: everybody may.
};

// The reason why a request is not answered.
struct Denial {
  int status = 403;
  std::string reason;
};

class Access {
 public:
  explicit Access(AccessOptions options);

  // Checks Host and Origin. None: the request may go on.
  std::optional<Denial> check_source(const Request& request) const;
  // The holder of the request's key; nobody without keys. None: the key is missing or unknown.
  std::optional<Caller> caller(const Request& request) const;
  // Headers for answers to a page of another origin.
  std::vector<Header> cors(const Request& request) const;
  // The answer to OPTIONS.
  Response preflight(const Request& request) const;

 private:
  bool is_own_host(std::string_view host) const;
  bool is_allowed_origin(const Request& request, std::string_view origin) const;

  struct HashedKey {
    Caller holder;
    std::string hash;
  };

  std::vector<std::string> hosts_;
  std::vector<std::string> origins_;
  std::vector<HashedKey> keys_;
};

}  // namespace saker::server::http
