// SPDX-License-Identifier: Apache-2.0
#include "saker/text/token_search.h"

#include "saker/base/error.h"
#include "saker/text/tokenizer.h"

#include "tests/support/expect_error.h"
#include "tests/text/golden_tokenizers.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace saker::text {
namespace {

using testing::expect_error;

TEST(TokenSearch, FindsAllTokensThatHoldAText) {
  const GoldenTokenizer golden("byte_level_bpe");
  const Tokenizer& tokenizer = *golden.tokenizer;
  const std::vector<std::string> texts = {"\n", ":"};
  const std::vector<std::int32_t> found = tokens_with(tokenizer, texts);
  EXPECT_FALSE(found.empty());
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.has_token(id)) {
      const std::string token = tokenizer.decode({&id, 1});
      EXPECT_EQ(
          std::ranges::binary_search(found, id), token.find_first_of("\n:") != std::string::npos
      ) << token;
    }
  }
}

TEST(TokenSearch, RefusesWhatMakesNoSense) {
  const GoldenTokenizer golden("byte_level_bpe");
  EXPECT_TRUE(tokens_with(*golden.tokenizer, {}).empty());
  const std::vector<std::string> empty = {""};
  expect_error(ErrorCode::kInvalidArgument, {"empty text"}, [&] {
    tokens_with(*golden.tokenizer, empty);
  });
  const std::vector<std::string> many(kMaxSearchedTexts + 1, "a");
  expect_error(ErrorCode::kInvalidArgument, {"257"}, [&] { tokens_with(*golden.tokenizer, many); });
}

}  // namespace
}  // namespace saker::text
