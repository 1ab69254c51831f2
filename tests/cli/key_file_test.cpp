// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/serve/key_file.h"

#include "saker/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace saker::cli {
namespace {

TEST(KeyFile, KeysHaveNamesClassesAndLimits) {
  const auto keys = parse_api_keys(
      R"([{"name": "ci", "key": "a", "class": "batch", "requests_per_minute": 60},
          {"name": "ann", "key": "b", "class": "interactive", "tokens_per_minute": 9000000000},
          {"name": "bo", "key": "c"}])",
      "keys.json"
  );
  ASSERT_EQ(keys.size(), 3U);
  EXPECT_EQ(keys[0].name, "ci");
  EXPECT_EQ(keys[0].key, "a");
  EXPECT_EQ(keys[0].requests_per_minute, 60);
  EXPECT_EQ(keys[1].tokens_per_minute, 9'000'000'000);
  EXPECT_LT(keys[0].priority, keys[2].priority);
  EXPECT_LT(keys[2].priority, keys[1].priority);
  EXPECT_EQ(keys[2].priority, 0);
}

TEST(KeyFile, MistakesAreNamedWithoutTheKey) {
  for (const std::string text :
       {"",
        "{}",
        "[]",
        "[5]",
        R"([{"name": "a"}])",
        R"([{"key": "hidden"}])",
        R"([{"name": "a", "key": 5}])",
        R"([{"name": "a", "key": "hidden", "class": "royal"}])",
        R"([{"name": "a", "key": "hidden", "requests_per_minute": -1}])",
        R"([{"name": "a", "key": "hidden", "requests_per_minute": 3000000000}])",
        R"([{"name": "a", "key": "hidden", "limit": 1}])",
        R"([{"name": "a", "key": "hidden"}, {"name": "a", "key": "hidden2"}])"}) {
    try {
      parse_api_keys(text, "keys.json");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("keys.json"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("hidden"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace saker::cli
