// SPDX-License-Identifier: Apache-2.0
#include "saker/text/tokenizer_config.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace saker::text {
namespace {

using Tokens = std::map<std::string, std::string>;

TEST(TokenizerConfig, NeedsNoFile) {
  const testing::TemporaryDir dir;
  const auto config = load_tokenizer_config(dir.path());
  EXPECT_TRUE(config.special_tokens.empty());
  EXPECT_FALSE(config.add_bos_token);
  EXPECT_TRUE(config.chat_template.is_null());
}

TEST(TokenizerConfig, ReadsTextsAndObjects) {
  const testing::TemporaryDir dir;
  dir.write(
      "tokenizer_config.json",
      R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "pad_token": null, "unk_token": 3,
          "add_bos_token": true, "extra_special_tokens": {"image_token": "<img>"}})"
  );
  const auto config = load_tokenizer_config(dir.path());
  EXPECT_EQ(
      config.special_tokens,
      (Tokens{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"image_token", "<img>"}})
  );
  EXPECT_TRUE(config.add_bos_token);
  EXPECT_EQ(config.special_token("eos_token"), "</s>");
  EXPECT_EQ(config.special_token("pad_token"), std::nullopt);
}

TEST(TokenizerConfig, TheLegacyMapCountsWithoutAddedTokens) {
  const testing::TemporaryDir dir;
  dir.write(
      "special_tokens_map.json", R"({"eos_token": {"content": "<map>"}, "bos_token": "<s>"})"
  );
  dir.write("tokenizer_config.json", R"({"eos_token": "</s>"})");
  EXPECT_EQ(
      load_tokenizer_config(dir.path()).special_tokens,
      (Tokens{{"bos_token", "<s>"}, {"eos_token", "<map>"}})
  );
  dir.write("tokenizer_config.json", R"({"eos_token": "</s>", "added_tokens_decoder": {}})");
  EXPECT_EQ(load_tokenizer_config(dir.path()).special_tokens, (Tokens{{"eos_token", "</s>"}}));
}

TEST(TokenizerConfig, RefusesMalformedFiles) {
  const testing::TemporaryDir dir;
  for (const auto* text : {"", "[]", "3", "{\"a\"", R"({"add_bos_token": "yes"})"}) {
    dir.write("tokenizer_config.json", text);
    testing::expect_error(ErrorCode::kCorruptData, {}, [&] { load_tokenizer_config(dir.path()); });
  }
}

}  // namespace
}  // namespace saker::text
