// SPDX-License-Identifier: Apache-2.0
#pragma once

// Requests and tokens that each key may have in a minute. A key that paused may send a minute's worth
// at once; then what was used comes back bit by bit. Tokens are known only when an answer has ended,
// so that the last answer may exceed the limit, and later ones wait for it. Any thread may call any
// member.

#include "saker/server/http/access.h"
#include "saker/server/http/message.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace saker::server {

class KeyLimits {
 public:
  using Clock = std::chrono::steady_clock;

  // Keys of one name share their limits.
  explicit KeyLimits(const std::vector<http::ApiKey>& keys);

  // The state of a key when a request comes.
  struct Room {
    std::vector<http::Header> headers = {};  // x-ratelimit-*, as OpenAI has them.
    double wait_s = 0.0;                     // Until the next request may come; 0: now.
    std::string_view used_up = {};           // "requests" or "tokens".
  };

  // Counts a request unless it has to wait.
  Room enter(std::string_view name, Clock::time_point now = Clock::now());
  void spend(std::string_view name, std::int64_t tokens);

 private:
  struct Bucket {
    double most = 0.0;  // Per minute; 0: no limit.
    double left = 0.0;

    void refill(double seconds);
    double wait_for(double amount) const;
    void describe(std::string_view unit, std::vector<http::Header>& headers) const;
  };

  struct Key {
    Bucket requests;
    Bucket tokens;
    Clock::time_point seen = {};
  };

  std::mutex mutex_;
  std::map<std::string, Key, std::less<>> keys_;  // Those with a limit.
};

}  // namespace saker::server
