// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/responses/store.h"

#include <gtest/gtest.h>

#include <string>

namespace saker::server::responses {
namespace {

StoredResponse of_size(std::size_t bytes) {
  return {.response = std::string(bytes, 'a'), .messages = Json::array(), .input = Json::array()};
}

TEST(ResponseStore, KeepsTheNewest) {
  ResponseStore store({.count = 2, .bytes = 1000, .age = std::chrono::seconds(60)});
  for (const std::string id : {"a", "b", "c"}) {
    store.put(id, of_size(10));
  }
  EXPECT_FALSE(store.get("a"));
  EXPECT_TRUE(store.get("b"));
  EXPECT_TRUE(store.get("c"));
  EXPECT_TRUE(store.erase("b"));
  EXPECT_FALSE(store.erase("b"));
  EXPECT_FALSE(store.get("b"));
}

TEST(ResponseStore, IsBoundedInBytesAndAge) {
  ResponseStore store({.count = 100, .bytes = 1000, .age = std::chrono::seconds(60)});
  store.put("a", of_size(600));
  store.put("b", of_size(600));
  EXPECT_FALSE(store.get("a"));
  EXPECT_TRUE(store.get("b"));
  store.put("c", of_size(2000));
  EXPECT_FALSE(store.get("c"));
  ResponseStore brief({.count = 100, .bytes = 1000, .age = std::chrono::seconds(-1)});
  brief.put("a", of_size(10));
  EXPECT_FALSE(brief.get("a"));
}

TEST(ResponseStore, ReplacesAnAnswer) {
  ResponseStore store({.count = 2, .bytes = 1000, .age = std::chrono::seconds(60)});
  store.put("a", of_size(10));
  store.put("a", of_size(20));
  EXPECT_EQ(store.get("a")->response.get<std::string>().size(), 20U);
}

}  // namespace
}  // namespace saker::server::responses
