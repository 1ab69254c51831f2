// SPDX-License-Identifier: Apache-2.0
#include "saker/server/key_limits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace saker::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string header(const KeyLimits::Room& room, const std::string& name) {
  for (const auto& [key, value] : room.headers) {
    if (key == name) {
      return value;
    }
  }
  return "none";
}

TEST(KeyLimits, RequestsOfAMinute) {
  KeyLimits limits({{.name = "a", .key = "k", .requests_per_minute = 2}});
  const auto start = KeyLimits::Clock::now();
  const auto first = limits.enter("a", start);
  EXPECT_EQ(first.wait_s, 0.0);
  EXPECT_EQ(header(first, "x-ratelimit-limit-requests"), "2");
  EXPECT_EQ(header(first, "x-ratelimit-remaining-requests"), "1");
  EXPECT_EQ(header(first, "x-ratelimit-limit-tokens"), "none");
  EXPECT_EQ(limits.enter("a", start).wait_s, 0.0);
  const auto third = limits.enter("a", start);
  EXPECT_EQ(third.used_up, "requests");
  EXPECT_NEAR(third.wait_s, 30.0, 0.1);
  EXPECT_GT(limits.enter("a", start + seconds(29)).wait_s, 0.0);
  EXPECT_EQ(limits.enter("a", start + seconds(31)).wait_s, 0.0);
  EXPECT_GT(limits.enter("a", start + seconds(31)).wait_s, 0.0);
  EXPECT_EQ(limits.enter("a", start + seconds(1000)).wait_s, 0.0);
  EXPECT_EQ(limits.enter("a", start + seconds(1000)).wait_s, 0.0);
  EXPECT_GT(limits.enter("a", start + seconds(1000)).wait_s, 0.0) << "more than a minute's worth";
}

TEST(KeyLimits, TokensOfAMinute) {
  KeyLimits limits({{.name = "a", .key = "k", .tokens_per_minute = 60}});
  const auto start = KeyLimits::Clock::now();
  EXPECT_EQ(limits.enter("a", start).wait_s, 0.0);
  limits.spend("a", 90);
  const auto room = limits.enter("a", start + milliseconds(1));
  EXPECT_EQ(room.used_up, "tokens");
  EXPECT_NEAR(room.wait_s, 31.0, 0.1);
  EXPECT_EQ(header(room, "x-ratelimit-remaining-tokens"), "0");
  EXPECT_EQ(limits.enter("a", start + seconds(32)).wait_s, 0.0);
}

TEST(KeyLimits, OtherKeysHaveNone) {
  KeyLimits limits({{.name = "a", .key = "k", .requests_per_minute = 1}, {.name = "b", .key = "l"}}
  );
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(limits.enter("b").wait_s, 0.0);
    EXPECT_TRUE(limits.enter("nobody").headers.empty());
    limits.spend("b", 1'000'000);
  }
}

TEST(KeyLimits, TimeThatRunsBackChangesNothing) {
  KeyLimits limits({{.name = "a", .key = "k", .requests_per_minute = 1}});
  const auto start = KeyLimits::Clock::now();
  EXPECT_EQ(limits.enter("a", start + seconds(10)).wait_s, 0.0);
  EXPECT_GT(limits.enter("a", start).wait_s, 0.0);
}

}  // namespace
}  // namespace saker::server
