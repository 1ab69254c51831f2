// SPDX-License-Identifier: Apache-2.0
#include "saker/text/fill_in_middle.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

std::optional<std::string> shown(const std::optional<MarkedText>& prompt) {
  return prompt ? std::optional(prompt->text) : std::nullopt;
}

// Its tokens are characters of ASCII, and `added`.
std::shared_ptr<const Tokenizer> characters_and(std::initializer_list<const char*> added) {
  Json vocabulary = Json::object();
  for (char letter = ' '; letter <= '~'; ++letter) {
    vocabulary[std::string(1, letter)] = vocabulary.size();
  }
  Json tokens = Json::array();
  bool special = true;  // Published files mark such tokens in either way.
  for (const char* token : added) {
    tokens.push_back({
        {"id", vocabulary.size()},
        {"content", token},
        {"special", special},
        {"normalized", false},
        {"single_word", false},
        {"lstrip", false},
        {"rstrip", false},
    });
    vocabulary[token] = vocabulary.size();
    special = !special;
  }
  const Json json = {
      {"version", "1.0"},
      {"added_tokens", tokens},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}}},
      {"post_processor", nullptr},
      {"decoder", nullptr},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}},
  };
  return Tokenizer::parse(json.dump(), "tokenizer.json");
}

TEST(FillInMiddle, NamesOfTokensInTheTextsStayText) {
  const auto tokenizer =
      characters_and({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|end|>"});
  const auto prompt = fill_in_middle_prompt(*tokenizer, "x <|end|>", "<|fim_middle|>y");
  ASSERT_TRUE(prompt);
  EXPECT_EQ(
      tokenizer->decode(tokenizer->encode(*prompt)),
      "<|fim_prefix|> x _ < | e n d | > <|fim_suffix|> < | f i m _ m i d d l e | > y <|fim_middle|>"
  );
  EXPECT_EQ(tokenizer->encode(prompt->text).size(), 8U);  // As one text, it would have six of them.
}

TEST(FillInMiddle, MarkedTextsWithoutNamesAreEncodedAsTexts) {
  const auto tokenizer = characters_and({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"});
  const FileText files[] = {{"a.py", "one two\n"}};
  for (const char* before : {"", "x y", " x"}) {
    for (const char* after : {"", "z"}) {
      const auto prompt = fill_in_middle_prompt(*tokenizer, before, after, files);
      ASSERT_TRUE(prompt);
      EXPECT_EQ(tokenizer->encode(*prompt), tokenizer->encode(prompt->text)) << prompt->text;
    }
  }
}

TEST(FillInMiddle, BadMarksAreRefused) {
  const auto tokenizer = characters_and({"<a>"});
  using Mark = MarkedText::Mark;
  for (const auto& marks : std::vector<std::vector<Mark>>{
           {{.begin = 1, .end = 0, .id = 0}},
           {{.begin = 0, .end = 3, .id = 0}},
           {{.begin = 0, .end = 1, .id = 200}},
           {{.begin = 0, .end = 1, .id = -1}},
           {{.begin = 1, .end = 2, .id = 0}, {.begin = 0, .end = 1, .id = 0}},
       }) {
    EXPECT_THROW(tokenizer->encode(MarkedText{"ab", marks}), Error);
  }
  EXPECT_THROW(tokenizer->encode(MarkedText{"\u00e9", {{.begin = 0, .end = 1, .id = 0}}}), Error);
}

TEST(FillInMiddle, TokensOfTheModelStandAroundTheTexts) {
  const auto qwen = tokenizer_with({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"});
  EXPECT_EQ(
      shown(fill_in_middle_prompt(*qwen, "def f(", "): pass")),
      "<|fim_prefix|>def f(<|fim_suffix|>): pass<|fim_middle|>"
  );
  const auto codestral = tokenizer_with({"[PREFIX]", "[SUFFIX]"});
  EXPECT_EQ(shown(fill_in_middle_prompt(*codestral, "def f(", ")")), "[SUFFIX])[PREFIX]def f(");
}

TEST(FillInMiddle, OtherFilesComeFirst) {
  const FileText files[] = {{"a.py", "one"}, {"b.py", "two\n"}};
  const auto plain = tokenizer_with({"[PREFIX]", "[SUFFIX]"});
  EXPECT_EQ(
      shown(fill_in_middle_prompt(*plain, "x", "y", files)),
      "\n\n--- snippet ---\n\none\n\n--- snippet ---\n\ntwo\n\n\n[SUFFIX]y[PREFIX]x"
  );
  const auto starcoder =
      tokenizer_with({"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>"});
  EXPECT_EQ(
      shown(fill_in_middle_prompt(*starcoder, "x", "y", files)),
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
