// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/options/token_list.h"

#include "saker/base/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace saker::cli {
namespace {

TEST(TokenList, ReadsIds) {
  EXPECT_EQ(parse_token_list("--tokens", "1,2,30"), (std::vector<std::int32_t>{1, 2, 30}));
  EXPECT_EQ(parse_token_list("--tokens", "7"), (std::vector<std::int32_t>{7}));
  EXPECT_TRUE(parse_token_list("--tokens", "").empty());
}

TEST(TokenList, RefusesAnythingElse) {
  for (const char* text : {",", "1,", "1,,2", "a", "1 2", " 1", "1.5", "99999999999"}) {
    EXPECT_THROW(parse_token_list("--tokens", text), Error) << text;
  }
}

}  // namespace
}  // namespace saker::cli
