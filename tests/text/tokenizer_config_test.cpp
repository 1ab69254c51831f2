// SPDX-License-Identifier: Apache-2.0
#include "saker/text/tokenizer_config.h"

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
      R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "pad_token": null, "image_token": "<i>",
          "add_bos_token": true, "extra_special_tokens": {"boi": "<img>"}})"
  );
  const auto config = load_tokenizer_config(dir.path());
  EXPECT_EQ(
      config.special_tokens,
      (Tokens{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"image_token", "<i>"}, {"boi", "<img>"}}
      )
  );
  EXPECT_TRUE(config.add_bos_token);
  EXPECT_EQ(config.special_token("eos_token"), "</s>");
  EXPECT_EQ(config.special_token("pad_token"), std::nullopt);
  EXPECT_TRUE(config.warnings.empty());
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

// What a file leaves out; null is no default.
TEST(TokenizerConfig, KnowsWhatClassesKnow) {
  const auto tokens = [](const std::string& tokenizer, const std::string& model) {
    const testing::TemporaryDir dir;
    dir.write("tokenizer_config.json", tokenizer);
    dir.write("config.json", model);
    dir.write("tokenizer.json", R"({"decoder": {"type": "ByteLevel"}})");
    return load_tokenizer_config(dir.path()).special_tokens;
  };
  const std::string end = "<|endoftext|>";
  const Tokens qwen{{"eos_token", end}, {"pad_token", end}, {"unk_token", end}};
  EXPECT_EQ(tokens(R"({"tokenizer_class": "Qwen2Tokenizer"})", "{}"), qwen);
  EXPECT_EQ(tokens(R"({"tokenizer_class": "Qwen2TokenizerFast"})", "{}"), qwen);
  EXPECT_EQ(tokens("{}", R"({"model_type": "qwen3"})"), qwen);
  EXPECT_EQ(tokens(R"({"tokenizer_class": "LlamaTokenizer"})", R"({"model_type": "qwen2"})"), qwen);
  EXPECT_EQ(
      tokens(R"({"tokenizer_class": "GPT2Tokenizer", "bos_token": null})", "{}").count("bos_token"),
      0U
  );
  EXPECT_EQ(tokens(R"({"tokenizer_class": "GemmaTokenizer"})", "{}").at("eos_token"), "<eos>");
  // Llama's class is for SentencePiece, and the file is not.
  EXPECT_EQ(
      tokens(R"({"tokenizer_class": "LlamaTokenizer"})", R"({"model_type": "llama"})"), Tokens{}
  );
  EXPECT_EQ(tokens(R"({"tokenizer_class": "PreTrainedTokenizerFast"})", "{}"), Tokens{});
  EXPECT_EQ(tokens("{}", "broken"), Tokens{});
}

TEST(TokenizerConfig, WarnsOfWhatIsDamaged) {
  const testing::TemporaryDir dir;
  for (const auto* text : {"", "[]", "3", "{\"a\""}) {
    dir.write("tokenizer_config.json", text);
    const auto config = load_tokenizer_config(dir.path());
    ASSERT_EQ(config.warnings.size(), 1U) << text;
    EXPECT_NE(config.warnings[0].find("tokenizer_config.json"), std::string::npos);
    EXPECT_FALSE(config.damage.empty());
  }
  for (const auto* text :
       {R"({"add_bos_token": "yes"})",
        R"({"eos_token": 3})",
        R"({"added_tokens_decoder": [1]})",
        R"({"added_tokens_decoder": {"x": {"content": "<x>"}}})",
        R"({"added_tokens_decoder": {"-1": {"content": "<x>"}}})",
        R"({"added_tokens_decoder": {"99999999999999999999": {"content": "<x>"}}})",
        R"({"added_tokens_decoder": {"7": {"content": 3}}})",
        R"({"added_tokens_decoder": {"7": {"content": "<x>", "lstrip": "no"}}})",
        R"({"additional_special_tokens": 3})",
        R"({"additional_special_tokens": [[]]})",
        R"({"extra_special_tokens": {"a": 3}})"}) {
    dir.write("tokenizer_config.json", text);
    const auto config = load_tokenizer_config(dir.path());
    ASSERT_EQ(config.warnings.size(), 1U) << text;
    EXPECT_NE(config.warnings[0].find("tokenizer_config.json"), std::string::npos);
    EXPECT_TRUE(config.damage.empty()) << text;
  }
  dir.write("tokenizer_config.json", R"({"eos_token": "</s>"})");
  dir.write("special_tokens_map.json", "{");
  dir.write("added_tokens.json", R"({"<x>": "y"})");
  const auto config = load_tokenizer_config(dir.path());
  ASSERT_EQ(config.warnings.size(), 2U);
  EXPECT_NE(config.warnings[0].find("special_tokens_map.json"), std::string::npos);
  EXPECT_NE(config.warnings[1].find("added_tokens.json"), std::string::npos);
  EXPECT_EQ(config.special_token("eos_token"), "</s>");
}

TEST(TokenizerConfig, TellsOfThousandsInFewLines) {
  const testing::TemporaryDir dir;
  std::string tokens;
  for (int i = 0; i < 5000; ++i) {
    tokens += (i == 0 ? "\"" : ", \"") + std::to_string(i) + "\": 3";
  }
  dir.write("tokenizer_config.json", R"({"added_tokens_decoder": {)" + tokens + "}}");
  const auto config = load_tokenizer_config(dir.path());
  ASSERT_EQ(config.warnings.size(), 4U);
  EXPECT_NE(config.warnings[3].find("4997 more"), std::string::npos);
}

}  // namespace
}  // namespace saker::text
