// SPDX-License-Identifier: Apache-2.0
#include "saker/text/pattern.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <string>

namespace saker::text {
namespace {

using testing::expect_error;

TEST(Pattern, Matches) {
  const Pattern pattern(R"(^(.*\.)?(layers\.[0-3]\.(q|v)_proj)$)", "test");
  EXPECT_TRUE(pattern.matches("model.layers.2.q_proj"));
  EXPECT_TRUE(pattern.matches("layers.3.v_proj"));
  EXPECT_FALSE(pattern.matches("layers.4.v_proj"));
  EXPECT_FALSE(pattern.matches("layers.3.k_proj"));
  EXPECT_FALSE(pattern.matches("xlayers.3.v_proj"));
  EXPECT_FALSE(pattern.matches("layers.3.v_proj\xff"));
}

TEST(Pattern, SaysWhatItCannotBe) {
  expect_error(ErrorCode::kUnsupported, {"rank_pattern", "unclosed"}, [] {
    Pattern("(a", "rank_pattern");
  });
  expect_error(ErrorCode::kUnsupported, {"look"}, [] { Pattern("(?!a)b", "x"); });
  expect_error(ErrorCode::kUnsupported, {"backreferences"}, [] { Pattern(R"((a)\1)", "x"); });
  expect_error(ErrorCode::kUnsupported, {"size limit"}, [] { Pattern("(a{1000}){1000}", "x"); });
  expect_error(ErrorCode::kUnsupported, {"UTF-8"}, [] { Pattern("\xff", "x"); });
}

// A matcher that goes back would need 2^1000 steps.
TEST(Pattern, NeverTakesLong) {
  EXPECT_FALSE(Pattern("^(a+)+$", "x").matches(std::string(1000, 'a') + "b"));
}

}  // namespace
}  // namespace saker::text
