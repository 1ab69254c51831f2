// SPDX-License-Identifier: Apache-2.0
#include "saker/server/key_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace saker::server {
namespace {

constexpr double kMinute = 60.0;

}  // namespace

void KeyLimits::Bucket::refill(double seconds) {
  left = std::min(most, left + seconds * most / kMinute);
}

double KeyLimits::Bucket::wait_for(double amount) const {
  return most <= 0.0 || left >= amount ? 0.0 : (amount - left) * kMinute / most;
}

void KeyLimits::Bucket::describe(std::string_view unit, std::vector<http::Header>& headers) const {
  if (most <= 0.0) {
    return;
  }
  const auto add = [&](std::string_view what, std::string value) {
    headers.emplace_back(fmt::format("x-ratelimit-{}-{}", what, unit), std::move(value));
  };
  add("limit", fmt::format("{:.0f}", most));
  add("remaining", fmt::format("{:.0f}", std::floor(std::max(left, 0.0))));
  add("reset", fmt::format("{:.3f}s", (most - left) * kMinute / most));
}

KeyLimits::KeyLimits(const std::vector<http::ApiKey>& keys) {
  for (const http::ApiKey& key : keys) {
    if (key.requests_per_minute > 0 || key.tokens_per_minute > 0) {
      const auto requests = static_cast<double>(key.requests_per_minute);
      const auto tokens = static_cast<double>(key.tokens_per_minute);
      keys_.try_emplace(key.name, Key{{requests, requests}, {tokens, tokens}, Clock::now()});
    }
  }
}

KeyLimits::Room KeyLimits::enter(std::string_view name, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto found = keys_.find(name);
  if (found == keys_.end()) {
    return {};
  }
  Key& key = found->second;
  const double seconds = std::max(std::chrono::duration<double>(now - key.seen).count(), 0.0);
  key.seen = std::max(key.seen, now);
  key.requests.refill(seconds);
  key.tokens.refill(seconds);
  Room room;
  const double for_request = key.requests.wait_for(1.0);
  const double for_token = key.tokens.wait_for(1.0);
  room.wait_s = std::max(for_request, for_token);
  if (room.wait_s > 0.0) {
    room.used_up = for_request > 0.0 ? "requests" : "tokens";
  } else if (key.requests.most > 0.0) {
    key.requests.left -= 1.0;
  }
  key.requests.describe("requests", room.headers);
  key.tokens.describe("tokens", room.headers);
  return room;
}

void KeyLimits::spend(std::string_view name, std::int64_t tokens) {
  const std::lock_guard lock(mutex_);
  if (const auto found = keys_.find(name); found != keys_.end()) {
    Bucket& bucket = found->second.tokens;
    bucket.left -= bucket.most > 0.0 ? static_cast<double>(tokens) : 0.0;
  }
}

}  // namespace saker::server
