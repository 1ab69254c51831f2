// SPDX-License-Identifier: Apache-2.0
#include "saker/text/fill_in_middle.h"

#include "saker/base/json/json.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>

namespace saker::text {
namespace {

std::shared_ptr<const Tokenizer> tokenizer_with(std::initializer_list<const char*> tokens) {
  Json vocabulary = {{"a", 0}};
  for (const char* token : tokens) {
    vocabulary[token] = vocabulary.size();
  }
  const Json json = {
      {"version", "1.0"},
      {"added_tokens", Json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", nullptr},
      {"post_processor", nullptr},
      {"decoder", nullptr},
      {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "a"}}},
  };
  return Tokenizer::parse(json.dump(), "tokenizer.json");
}

TEST(FillInMiddle, TokensOfTheModelStandAroundTheTexts) {
  const auto qwen = tokenizer_with({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"});
  EXPECT_EQ(
      fill_in_middle_prompt(*qwen, "def f(", "): pass"),
      "<|fim_prefix|>def f(<|fim_suffix|>): pass<|fim_middle|>"
  );
  const auto codestral = tokenizer_with({"[PREFIX]", "[SUFFIX]"});
  EXPECT_EQ(fill_in_middle_prompt(*codestral, "def f(", ")"), "[SUFFIX])[PREFIX]def f(");
}

TEST(FillInMiddle, OtherFilesComeFirst) {
  const FileText files[] = {{"a.py", "one"}, {"b.py", "two\n"}};
  const auto plain = tokenizer_with({"[PREFIX]", "[SUFFIX]"});
  EXPECT_EQ(
      fill_in_middle_prompt(*plain, "x", "y", files),
      "\n\n--- snippet ---\n\none\n\n--- snippet ---\n\ntwo\n\n\n[SUFFIX]y[PREFIX]x"
  );
  const auto starcoder =
      tokenizer_with({"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>"});
  EXPECT_EQ(
      fill_in_middle_prompt(*starcoder, "x", "y", files),
      "<repo_name>project\n<file_sep>a.py\none\n<file_sep>b.py\ntwo\n<file_sep>file\n"
      "<fim_prefix>x<fim_suffix>y<fim_middle>"
  );
}

TEST(FillInMiddle, OtherModelsCannot) {
  EXPECT_FALSE(fill_in_middle_prompt(*tokenizer_with({}), "a", "b"));
  EXPECT_FALSE(
      fill_in_middle_prompt(*tokenizer_with({"<|fim_prefix|>", "<|fim_suffix|>"}), "a", "b")
  );
}

}  // namespace
}  // namespace saker::text
