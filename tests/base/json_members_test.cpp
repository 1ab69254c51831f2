// SPDX-License-Identifier: Apache-2.0
#include "saker/base/json/json_members.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

namespace saker {
namespace {

TEST(JsonObjectMembers, KeepTheirOrderAndTheLastValue) {
  JsonMembers members(Json({{"b", 1}, {"a", 2}}));
  members.set("c", 3);
  members.set("a", 4);
  EXPECT_EQ(members.take().dump(), R"({"b":1,"a":4,"c":3})");
  EXPECT_EQ(JsonMembers().take(), Json::object());
  EXPECT_EQ(json_object(std::map<std::string, int>{{"x", 1}}).dump(), R"({"x":1})");
}

// Minutes where each key is looked up in those before it.
TEST(JsonObjectMembers, TakeTimeInProportion) {
  constexpr int kCount = 300'000;
  const auto start = std::chrono::steady_clock::now();
  JsonMembers members;
  for (int i = 0; i < kCount; ++i) {
    members.set(std::to_string(i), i);
  }
  EXPECT_EQ(members.take().size(), kCount);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace saker
